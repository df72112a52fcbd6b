import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { limitOptimization } from "./memory.ts";

const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("functions are optimized for five minutes, and then for ten seconds every ten minutes", () => {
  const startedAt = Date.now();
  const flags: [seconds: number, flag: string][] = [];
  limitOptimization((flag) => flags.push([(Date.now() - startedAt) / 1_000, flag]));
  vi.advanceTimersByTime(25 * MINUTE);
  expect(flags).toEqual([
    [300, "--no-turbofan"],
    [600, "--turbofan"],
    [610, "--no-turbofan"],
    [1200, "--turbofan"],
    [1210, "--no-turbofan"],
  ]);
});
