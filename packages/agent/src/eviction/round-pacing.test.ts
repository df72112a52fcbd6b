import { FakeClock } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { REQUESTED_ROUND_INTERVAL_MS, RoundPacing } from "./round-pacing.ts";

const PERIOD_MS = 5_000;

/** Plays rounds of some length, and notes when each started and for whom. */
function play(roundMs = 0) {
  const clock = new FakeClock();
  const pacing = new RoundPacing(clock);
  const stop = new AbortController();
  const starts: { at: number; for: string | undefined }[] = [];
  const run = async () => {
    while (!stop.signal.aborted) {
      const startedAt = clock.monotonic();
      if (roundMs > 0) await clock.sleep(roundMs, stop.signal);
      const request = await pacing.next(startedAt + PERIOD_MS, stop.signal);
      starts.push({ at: clock.monotonic(), for: request?.reason });
    }
  };
  const running = run().catch(() => {});
  const request = (reason: string) => pacing.request({ plugin: "p", reason });
  const end = async () => {
    stop.abort();
    await running;
  };
  return { clock, starts, request, end };
}

it("starts a regular round each period, and a requested one at once", async () => {
  const { clock, starts, request, end } = play();
  await clock.step(5_000);
  await clock.step(1_200);
  request("now");
  await clock.step(0);
  await clock.step(5_000);
  await end();
  expect(starts).toEqual([
    { at: 5_000, for: undefined },
    { at: 6_200, for: "now" },
    { at: 11_200, for: undefined },
  ]);
});

it("serves a request that comes during a round by another one", async () => {
  const { clock, starts, request, end } = play(300);
  await clock.step(100);
  request("meanwhile");
  await clock.step(400);
  await end();
  expect(starts).toEqual([{ at: 300, for: "meanwhile" }]);
});

it("puts off a request that comes too soon after another, and starts one round for all of them", async () => {
  const { clock, starts, request, end } = play();
  for (const reason of ["first", "second", "third"]) {
    request(reason);
    await clock.step(100);
  }
  await clock.step(2_000);
  await end();
  expect(starts).toEqual([
    { at: 0, for: "first" },
    { at: 1_000, for: "second" },
  ]);
});

it("however often a signal flaps, starts at most one extra round a second, and leaves no request unserved", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 2_500 }), { maxLength: 60 }),
      fc.integer({ min: 0, max: 1_500 }),
      async (pauses, roundMs) => {
        const { clock, starts, request, end } = play(roundMs);
        const requestedAt: number[] = [];
        for (const pause of pauses) {
          request("flap");
          requestedAt.push(clock.monotonic());
          await clock.step(pause);
        }
        await clock.step(PERIOD_MS + roundMs);
        await end();
        const extra = starts.filter((start) => start.for !== undefined).map(({ at }) => at);
        for (const [index, at] of extra.slice(1).entries()) {
          expect(at - extra[index]!).toBeGreaterThanOrEqual(REQUESTED_ROUND_INTERVAL_MS);
        }
        for (const at of requestedAt) {
          const served = starts.find((start) => start.at >= at);
          expect(served!.at - at).toBeLessThanOrEqual(Math.max(REQUESTED_ROUND_INTERVAL_MS, roundMs));
        }
      },
    ),
    { numRuns: 40 },
  );
});
