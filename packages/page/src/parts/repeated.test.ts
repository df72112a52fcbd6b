import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Repeated } from "./repeated.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Work that lasts until it is ended by hand. */
function heldWork() {
  const ends: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const work = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<void>((resolve) => ends.push(resolve));
  };
  return { work, signals, ends };
}

it("starts at once, and requests while it is under way start it once more, after the interval", async () => {
  const { work, signals, ends } = heldWork();
  const repeated = new Repeated(2_000, work);
  repeated.request();
  await vi.advanceTimersByTimeAsync(0);
  expect(signals).toHaveLength(1);
  for (let more = 0; more < 5; more++) repeated.request();
  await vi.advanceTimersByTimeAsync(500);
  expect(signals).toHaveLength(1);
  ends[0]!();
  await vi.advanceTimersByTimeAsync(1_499);
  expect(signals).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(signals).toHaveLength(2);
  ends[1]!();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(signals).toHaveLength(2);
});

it("requests at a high rate don't keep it from starting", async () => {
  const { work, signals, ends } = heldWork();
  const repeated = new Repeated(2_000, work);
  for (let at = 0; at < 55; at++) {
    repeated.request();
    await vi.advanceTimersByTimeAsync(100);
    ends.at(-1)?.();
  }
  expect(signals).toHaveLength(3);
});

it("a stop ends what is under way and starts nothing more", async () => {
  const { work, signals, ends } = heldWork();
  const repeated = new Repeated(2_000, work);
  repeated.request();
  await vi.advanceTimersByTimeAsync(0);
  repeated.request();
  repeated.stop();
  expect(signals[0]!.aborted).toBe(true);
  ends[0]!();
  await vi.advanceTimersByTimeAsync(10_000);
  repeated.request();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(signals).toHaveLength(1);
});
