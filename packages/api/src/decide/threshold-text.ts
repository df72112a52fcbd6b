import { roundedBytes } from "../text/index.ts";
import type { ThresholdAnswer } from "./answers.ts";

/** The values of a threshold, as shown to operators. */
export type ThresholdValues = Pick<ThresholdAnswer, "observedValue" | "thresholdValue" | "operator"> &
  Partial<Pick<ThresholdAnswer, "unit">>;

/**
 * For example "memory 0.93 > threshold 0.8", or "memory 512Mi < threshold 1Gi" if the plugin sends the unit "bytes".
 */
export function thresholdText(scope: string, values: ThresholdValues): string {
  const { observedValue, thresholdValue, operator, unit = "" } = values;
  const side = operator === "lessThan" ? "<" : ">";
  return `${scope || "value"} ${valueText(observedValue, unit)} ${side} threshold ${valueText(thresholdValue, unit)}`;
}

/** Returns the threshold without the observed value, for example "memory > 0.8". */
export function thresholdRuleText(
  scope: string,
  { thresholdValue, operator, unit = "" }: Omit<ThresholdValues, "observedValue">,
): string {
  return `${scope || "value"} ${operator === "lessThan" ? "<" : ">"} ${valueText(thresholdValue, unit)}`;
}

/** For example "512Mi" for bytes, "94.1%", "3 inodes"; "unknown" for null. */
export function valueText(value: number | null, unit: string): string {
  if (value === null) return "unknown";
  if (unit === "bytes") return roundedBytes(value);
  if (unit === "" || unit === "%") return `${value}${unit}`;
  return `${value} ${unit}`;
}
