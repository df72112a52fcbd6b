import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { PacedReports } from "./paced-reports.ts";

function setUp(take: (text: string) => void = () => {}) {
  const clock = new FakeClock();
  const taken: string[] = [];
  const errors: unknown[] = [];
  const reports = new PacedReports({
    take: (bytes) => {
      const text = Buffer.from(bytes).toString();
      taken.push(text);
      take(text);
    },
    onError: (error) => errors.push(error),
    clock,
  });
  return { clock, taken, errors, reports, add: (text: string) => reports.add(Buffer.from(text)) };
}

it("a flood of reports is passed on once a second: the first at once, then the newest", async () => {
  const { clock, taken, add } = setUp();
  for (let number = 0; number < 1_000; number++) add(`report ${number}`);
  expect(taken).toEqual(["report 0"]);
  await clock.step(1_000);
  expect(taken).toEqual(["report 0", "report 999"]);
  for (let number = 1_000; number < 2_000; number++) add(`report ${number}`);
  expect(taken).toHaveLength(2);
  await clock.step(1_000);
  expect(taken.at(-1)).toBe("report 1999");
  // After a quiet second the next one does not wait.
  await clock.step(1_000);
  add("report 2000");
  expect(taken.at(-1)).toBe("report 2000");
});

it("equal bytes are skipped", async () => {
  const { clock, taken, add } = setUp();
  for (let second = 0; second < 5; second++) {
    add("healthy");
    await clock.step(1_000);
  }
  add("unhealthy");
  expect(taken).toEqual(["healthy", "unhealthy"]);
});

it("what waits when the stream ends is passed on, and no timer is left", async () => {
  const { clock, taken, add, reports } = setUp();
  add("healthy");
  add("unhealthy");
  reports.end();
  expect(taken).toEqual(["healthy", "unhealthy"]);
  await clock.step(10_000);
  expect(taken).toHaveLength(2);
});

it("a report that can't be read is an error, also where it has waited", async () => {
  const { clock, errors, add } = setUp((text) => {
    if (text === "torn") throw new Error("torn");
  });
  add("healthy");
  add("torn");
  expect(errors).toEqual([]);
  await clock.step(1_000);
  expect(errors).toEqual([new Error("torn")]);
});
