import { NodekeeperError } from "./errors.ts";
import { parseQuantity, wholeUnits } from "./quantity.ts";

/** Reads a size such as "4Mi" or "100k" into bytes, a fraction rounded up. Throws `invalid`, also for negative sizes and sizes above 2^53-1. */
export function parseByteSize(text: string): number {
  const bytes = wholeUnits(parseQuantity(text));
  if (bytes < 0n || bytes > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new NodekeeperError(
      "invalid",
      `${JSON.stringify(text)} is not a size from 0 to ${Number.MAX_SAFE_INTEGER} bytes`,
    );
  }
  return Number(bytes);
}

/** Writes bytes for people, with three digits at least: 64225280 is "61.3Mi", 512 is "512". Any number is taken. */
export function roundedBytes(bytes: number): string {
  const suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let value = bytes;
  let step = 0;
  while (Math.abs(value) >= 1024 && step < suffixes.length - 1) {
    value /= 1024;
    step++;
  }
  return `${Number(value.toFixed(Math.abs(value) < 100 ? 1 : 0))}${suffixes[step]}`;
}
