import { expect, it } from "vitest";
import { type ThresholdValues, thresholdText } from "./threshold-text.ts";

it.each<[string, Partial<ThresholdValues>, string]>([
  ["memory", { observedValue: 0.93, thresholdValue: 0.8 }, "memory 0.93 > threshold 0.8"],
  ["", { observedValue: null, thresholdValue: 1, operator: "lessThan" }, "value unknown < threshold 1"],
  ["disk", { observedValue: 95, thresholdValue: 90, unit: "%" }, "disk 95% > threshold 90%"],
  [
    "free",
    { observedValue: 64_225_280, thresholdValue: 2 ** 30, unit: "bytes", operator: "lessThan" },
    "free 61.3Mi < threshold 1Gi",
  ],
  ["inodes", { observedValue: 5, thresholdValue: 9, unit: "inodes" }, "inodes 5 inodes > threshold 9 inodes"],
])("a threshold of %s with %o reads %s", (scope, values, expected) => {
  const whole = { observedValue: 0, thresholdValue: 0, operator: "greaterThan", ...values } as const;
  expect(thresholdText(scope, whole)).toBe(expected);
});
