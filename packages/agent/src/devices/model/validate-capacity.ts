import { compareQuantities, parseQuantity, type Quantity, wholeUnits } from "@nodekeeper/core/lib";
import { limits } from "./limits.ts";
import type { DeviceCapacity, RequestPolicy } from "./model.ts";

/** Reports a problem with a field, whose path is relative to what is checked. */
export type Report = (field: string, message: string) => void;

/** Parses a quantity. Reports a problem and returns undefined if it is invalid. */
export function readQuantity(text: string, field: string, report: Report): Quantity | undefined {
  try {
    return parseQuantity(text);
  } catch (error) {
    report(field, (error as Error).message);
    return undefined;
  }
}

/** Checks one capacity of a device: its value, and its request policy against that value. */
export function checkCapacity(
  { value, requestPolicy }: DeviceCapacity,
  mayBeShared: boolean,
  report: Report,
): void {
  const whole = readQuantity(value, "value", report);
  if (!requestPolicy) return;
  if (!mayBeShared) {
    report("requestPolicy", "needs allowMultipleAllocations");
    return;
  }
  const { validValues = [], validRange } = requestPolicy;
  if (validValues.length > 0 && validRange) {
    report("requestPolicy", "only one of validValues and validRange may be set");
    return;
  }
  const fallback =
    requestPolicy.default === undefined
      ? undefined
      : readQuantity(requestPolicy.default, "requestPolicy.default", report);
  if (validValues.length === 0 && !validRange) return;
  if (requestPolicy.default === undefined) {
    report("requestPolicy.default", "is required with validValues or validRange");
    return;
  }
  if (!whole || !fallback) return;
  if (validRange) checkRange(validRange, whole, fallback, report);
  else checkValues(validValues, whole, fallback, report);
}

function checkValues(texts: string[], whole: Quantity, fallback: Quantity, report: Report): void {
  const field = "requestPolicy.validValues";
  if (texts.length > limits.requestPolicyValues) {
    report(field, `has ${texts.length} values, at most ${limits.requestPolicyValues} are allowed`);
    return;
  }
  let previous: Quantity | undefined;
  let hasFallback = false;
  for (const [at, text] of texts.entries()) {
    const value = readQuantity(text, `${field}[${at}]`, report);
    if (!value) return;
    if (previous && compareQuantities(previous, value) >= 0) {
      report(`${field}[${at}]`, "values must be in ascending order, without duplicates");
    }
    if (compareQuantities(value, whole) > 0) report(`${field}[${at}]`, "exceeds the capacity");
    hasFallback ||= compareQuantities(value, fallback) === 0;
    previous = value;
  }
  if (!hasFallback) report("requestPolicy.default", "is not among validValues");
}

function checkRange(
  range: NonNullable<RequestPolicy["validRange"]>,
  whole: Quantity,
  fallback: Quantity,
  report: Report,
): void {
  const field = "requestPolicy.validRange";
  if (range.min === undefined) {
    report(`${field}.min`, "is required");
    return;
  }
  const min = readQuantity(range.min, `${field}.min`, report);
  const max = range.max === undefined ? undefined : readQuantity(range.max, `${field}.max`, report);
  const step = range.step === undefined ? undefined : readQuantity(range.step, `${field}.step`, report);
  if (!min) return;
  if (min.nano < 0n) report(`${field}.min`, "must not be negative");
  if (compareQuantities(min, whole) > 0) report(`${field}.min`, "exceeds the capacity");
  if (compareQuantities(fallback, min) < 0) report("requestPolicy.default", "is less than validRange.min");
  if (max) {
    if (compareQuantities(min, max) > 0) report(`${field}.max`, "is less than min");
    if (compareQuantities(max, whole) > 0) report(`${field}.max`, "exceeds the capacity");
    if (compareQuantities(fallback, max) > 0) report("requestPolicy.default", "exceeds validRange.max");
  }
  if (step) checkStep({ min, max, step }, whole, fallback, report);
}

function checkStep(
  { min, max, step }: { min: Quantity; max: Quantity | undefined; step: Quantity },
  whole: Quantity,
  fallback: Quantity,
  report: Report,
): void {
  const field = "requestPolicy.validRange.step";
  // The API server divides by it without a check.
  if (step.nano <= 0n) {
    report(field, "must be greater than zero");
    return;
  }
  if (min.nano + step.nano > whole.nano) report(field, "min plus one step exceeds the capacity");
  // Servers before 1.37, or without DRAFractionalCapacityRange, count in whole units, rounded up; others count exactly.
  // Values that either accepts are left to the server.
  const isOnStep = (value: Quantity) =>
    (value.nano - min.nano) % step.nano === 0n ||
    (wholeUnits(value) - wholeUnits(min)) % wholeUnits(step) === 0n;
  if (!isOnStep(fallback)) report("requestPolicy.default", "is not min plus a whole number of steps");
  if (max && !isOnStep(max))
    report("requestPolicy.validRange.max", "is not min plus a whole number of steps");
}
