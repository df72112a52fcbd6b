import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { pacedReports } from "./paced-reports.ts";

function setUp() {
  const clock = new FakeClock();
  const stream = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>();
  const reports = new ReadableStream<Uint8Array>({ start: (controller) => stream.resolve(controller) });
  const taken: string[] = [];
  const taking = (async () => {
    for await (const bytes of pacedReports(reports, clock)) taken.push(Buffer.from(bytes).toString());
  })();
  taking.catch(() => {});
  /** Sends reports at once. */
  const add = async (...texts: string[]) => {
    const controller = await stream.promise;
    for (const text of texts) controller.enqueue(Buffer.from(text));
    await clock.step(0);
  };
  return { clock, taken, taking, add, stream: stream.promise };
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => `report ${from + at}`);

it("a flood of reports is passed on once a second: the first at once, then the newest", async () => {
  const { clock, taken, add } = setUp();
  await add("report 0");
  await add(...numbered(1, 1_000));
  expect(taken).toEqual(["report 0"]);
  await clock.step(1_000);
  expect(taken).toEqual(["report 0", "report 999"]);
  await add(...numbered(1_000, 2_000));
  expect(taken).toHaveLength(2);
  await clock.step(1_000);
  expect(taken.at(-1)).toBe("report 1999");
  // After a quiet second the next one does not wait.
  await clock.step(1_000);
  await add("report 2000");
  expect(taken.at(-1)).toBe("report 2000");
});

it("equal bytes are skipped", async () => {
  const { clock, taken, add } = setUp();
  for (let second = 0; second < 5; second++) {
    await add("healthy");
    await clock.step(1_000);
  }
  await add("unhealthy");
  expect(taken).toEqual(["healthy", "unhealthy"]);
});

it.each(["ends", "fails"])("the waiting report is passed on when the stream %s", async (how) => {
  const { taken, taking, add, stream } = setUp();
  await add("healthy");
  await add("unhealthy");
  expect(taken).toEqual(["healthy"]);
  if (how === "ends") (await stream).close();
  else (await stream).error(new Error("torn"));
  if (how === "ends") await taking;
  else await expect(taking).rejects.toThrow("torn");
  expect(taken).toEqual(["healthy", "unhealthy"]);
});
