import { expect, it } from "vitest";
import { graceSeconds } from "./settings.ts";

it.each([
  [0, null],
  // Never 0: that would kill immediately.
  [400, 1],
  [1_500, 2],
  [60_000, 60],
])("a grace period of %i ms is %s s", (ms, seconds) => expect(graceSeconds(ms)).toBe(seconds));
