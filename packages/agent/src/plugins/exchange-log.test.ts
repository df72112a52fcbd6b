import { expect, it } from "vitest";
import { cutJson, ExchangeLog } from "./exchange-log.ts";

it("has the last exchange of each call, the newest first, and the last 60 durations in their order", () => {
  const log = new ExchangeLog();
  for (let at = 0; at < 100; at++) log.note({ call: at % 2 ? "B" : "A", at, ms: at / 2, answer: { at } });
  log.note({ call: "A", at: 100, ms: 7, error: "deadline" });
  log.note({ call: "Stream", at: 101 });
  const { calls, durations } = log.show();
  expect(calls).toEqual([
    { call: "Stream", at: 101 },
    { call: "A", at: 100, ms: 7, error: "deadline" },
    { call: "B", at: 99, ms: 49.5, answer: '{"at":99}' },
  ]);
  expect(durations).toHaveLength(60);
  expect(durations.at(-1)).toEqual({ call: "A", at: 100, ms: 7, ok: false });
  expect(durations.map(({ at }) => at)).toEqual(Array.from({ length: 60 }, (_, index) => 41 + index));
});

it("keeps 20 items of a long list, and their number", () => {
  const log = new ExchangeLog();
  const pods = Array.from({ length: 5_000 }, (_, at) => ({ name: `p${at}`, reason: "x".repeat(40) }));
  log.note({
    call: "GetEvictPods",
    at: 1,
    ms: 1,
    request: { activePods: pods },
    answer: { pods, condition: null },
  });
  const [{ request = "", answer = "" } = {}] = log.show().calls;
  expect(JSON.parse(request)["activePods omitted"]).toBe(4_980);
  expect(JSON.parse(answer)["pods omitted"]).toBe(4_980);
  expect(JSON.parse(answer).pods).toHaveLength(20);
});

it("cuts JSON of any size and shape", () => {
  expect(cutJson({ a: [1, null, true, undefined], b: undefined, c: "x" }, 100)).toBe(
    '{"a":[1,null,true,null],"c":"x"}',
  );
  expect(cutJson({ n: 5n, bytes: new Uint8Array(9) }, 100)).toBe('{"n":5,"bytes":"9 bytes"}');
  expect(cutJson("x".repeat(10_000_000), 10)).toBe(`"${"x".repeat(9)}…`);
  expect(cutJson(Array(1_000_000).fill({ deep: [[["y"]]] }), 20)).toMatch(/^\[.{19}…$/);
  let deep: unknown = 1;
  for (let at = 0; at < 100_000; at++) deep = { deep };
  expect(cutJson(deep, 2_000)).toHaveLength(2_001);
});
