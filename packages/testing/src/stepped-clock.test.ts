import { expect, it } from "vitest";
import { SteppedClock } from "./stepped-clock.ts";

const HOUR_MS = 3_600_000;

it("advanced, fires what is due in its order, leaves what is not, and moves both times", async () => {
  const clock = new SteppedClock();
  const [wall, monotonic] = [clock.now(), clock.monotonic()];
  const fired: string[] = [];
  const last = Promise.withResolvers<void>();
  clock.after(3 * HOUR_MS, () => fired.push("later"));
  clock.after(HOUR_MS, () => {
    fired.push("hour");
    last.resolve();
  });
  clock.after(HOUR_MS / 2, () => fired.push("half"));
  clock.after(HOUR_MS / 4, () => fired.push("cancelled")).cancel();
  clock.advance(HOUR_MS);
  await last.promise;
  await clock.sleep(1);
  expect(fired).toEqual(["half", "hour"]);
  expect(clock.now() - wall).toBeGreaterThanOrEqual(HOUR_MS);
  expect(clock.monotonic() - monotonic).toBeGreaterThanOrEqual(HOUR_MS);
  clock.advance(2 * HOUR_MS);
  await clock.sleep(1);
  expect(fired).toEqual(["half", "hour", "later"]);
});

it("stepped, moves the wall time alone", async () => {
  const clock = new SteppedClock();
  let isOver = false;
  const stop = new AbortController();
  const sleeping = clock.sleep(HOUR_MS, stop.signal).finally(() => {
    isOver = true;
  });
  const wall = clock.now();
  clock.step(2 * HOUR_MS);
  await clock.sleep(1);
  expect(isOver).toBe(false);
  expect(clock.now() - wall).toBeGreaterThanOrEqual(2 * HOUR_MS);
  stop.abort(new Error("enough"));
  await expect(sleeping).rejects.toThrow("enough");
});
