import { NodekeeperError } from "../errors/index.ts";

/** The suffix family of a quantity, kept when it is formatted again. */
export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/**
 * An exact Kubernetes resource quantity. The finest unit is one nano, so an integer number of nanos represents every
 * value. Rules: documentation of `resource.Quantity` in apimachinery.
 */
export interface Quantity {
  /** The value times 10^9. */
  readonly nano: bigint;
  readonly format: QuantityFormat;
}

const NANOS = 1_000_000_000n;
const NANO_EXPONENT = 9;
const LARGEST_BINARY = (2n ** 63n - 1n) * NANOS;
// Both limits bound the time that hostile input takes to microseconds; real quantities have some 20 digits.
const LONGEST_TEXT = 256;
const LARGEST_EXPONENT = 512;

// A lone sign, point or suffix is rejected, as the documented grammar requires; apimachinery's scanner parses it as 0.
const grammar = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d+))$/;

/** The texts that `parseQuantity` accepts, for JSON schemas. They do not limit exponents. */
export const quantitySchema = { type: "string", pattern: grammar.source, maxLength: LONGEST_TEXT } as const;

const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const decimalExponents: Record<string, number> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const decimalSuffixes = new Map(
  Object.entries(decimalExponents).map(([suffix, exponent]) => [exponent, suffix]),
);

/**
 * Parses a quantity such as "500m", "1.5Gi" or "12e6". Values finer than a nano are rounded away from zero, and a
 * binary quantity is capped at a magnitude of 2^63-1. Throws `invalid` if the text is not a quantity.
 */
export function parseQuantity(text: string): Quantity {
  const match = text.length <= LONGEST_TEXT ? grammar.exec(text) : null;
  if (!match) {
    throw new NodekeeperError(
      "invalid",
      `${shown(text)} is not a quantity such as "500m", "1.5Gi" or "12e6"`,
    );
  }
  const [, sign, whole = "", fraction = match[4] ?? "", , binary, decimal, exponent] = match;
  const digits = BigInt(whole + fraction);
  const negative = sign === "-";
  if (binary !== undefined) return signed(readBinary(digits, fraction.length, binary), negative);

  const power = exponent === undefined ? decimalExponents[decimal ?? ""]! : Number(exponent);
  if (power > LARGEST_EXPONENT) {
    throw new NodekeeperError(
      "invalid",
      `${shown(text)} is too large: the exponent is above ${LARGEST_EXPONENT}`,
    );
  }
  const nano = scaleUp(digits, power - fraction.length + NANO_EXPONENT);
  return signed({ nano, format: exponent === undefined ? "DecimalSI" : "DecimalExponent" }, negative);
}

/** Whether a value is a string that `parseQuantity` accepts. */
export function isQuantity(value: unknown): value is string {
  if (typeof value !== "string") return false;
  try {
    parseQuantity(value);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the canonical form: no fractional digits, the largest suffix of the family without loss of precision, "0" for
 * zero. A binary quantity that is below 1024, fractional, or above 2^63-1 is formatted as DecimalSI; a DecimalSI beyond
 * "E" gets an exponent. (apimachinery formats binary quantities above 2^63-1 with "Ei", which it cannot parse back.)
 */
export function formatQuantity(quantity: Quantity): string {
  const { nano, format } = quantity;
  if (nano === 0n) return "0";
  const magnitude = nano < 0n ? -nano : nano;
  const isBinary =
    format === "BinarySI" &&
    magnitude >= 1024n * NANOS &&
    magnitude <= LARGEST_BINARY &&
    magnitude % NANOS === 0n;
  const text = isBinary
    ? formatBinary(magnitude / NANOS)
    : formatDecimal(magnitude, format === "DecimalExponent");
  return nano < 0n ? `-${text}` : text;
}

/** Converts an integer to a quantity. Throws `invalid` if a number is not a safe integer. */
export function quantityOf(value: bigint | number, format: QuantityFormat = "DecimalSI"): Quantity {
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new NodekeeperError("invalid", `${value} is not an integer that a quantity can be made of exactly`);
  }
  return { nano: BigInt(value) * NANOS, format };
}

/** Returns the value as an integer, rounded away from zero, as apimachinery's `Value`. */
export function wholeUnits(quantity: Quantity): bigint {
  const { nano } = quantity;
  const whole = nano / NANOS;
  if (nano % NANOS === 0n) return whole;
  return nano < 0n ? whole - 1n : whole + 1n;
}

/**
 * Returns a negative number if `a` < `b`, 0 if their values are equal regardless of format, and a positive number
 * otherwise.
 */
export function compareQuantities(a: Quantity, b: Quantity): number {
  if (a.nano === b.nano) return 0;
  return a.nano < b.nano ? -1 : 1;
}

function readBinary(digits: bigint, places: number, suffix: string): Quantity {
  const factor = 1024n ** BigInt(binarySuffixes.indexOf(suffix));
  const exact = scaleUp(digits * factor, NANO_EXPONENT - places);
  const nano = exact > LARGEST_BINARY ? LARGEST_BINARY : exact;
  return { nano, format: nano > 0n && nano < NANOS ? "DecimalSI" : "BinarySI" };
}

// digits x 10^power for digits >= 0, rounded up to an integer.
function scaleUp(digits: bigint, power: number): bigint {
  if (digits === 0n) return 0n;
  if (power >= 0) return digits * 10n ** BigInt(power);
  if (power < -LONGEST_TEXT) return 1n;
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}

function signed(quantity: Quantity, negative: boolean): Quantity {
  return negative ? { ...quantity, nano: -quantity.nano } : quantity;
}

function formatBinary(units: bigint): string {
  let mantissa = units;
  let step = 0;
  while (step < binarySuffixes.length - 1 && mantissa % 1024n === 0n) {
    mantissa /= 1024n;
    step++;
  }
  return `${mantissa}${binarySuffixes[step]}`;
}

function formatDecimal(nano: bigint, asExponent: boolean): string {
  let mantissa = nano;
  let exponent = -NANO_EXPONENT;
  while (mantissa % 1000n === 0n) {
    mantissa /= 1000n;
    exponent += 3;
  }
  const suffix = asExponent ? undefined : decimalSuffixes.get(exponent);
  if (suffix !== undefined) return `${mantissa}${suffix}`;
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
}

function shown(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}...` : text);
}
