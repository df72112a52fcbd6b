import { vi } from "vitest";

/** Repeats the check until it passes; fails with its last failure. Real parts answer when they can. */
export function eventually<T>(check: () => T | Promise<T>, timeoutMs = 15_000): Promise<T> {
  return vi.waitFor(check, { timeout: timeoutMs, interval: 50 });
}
