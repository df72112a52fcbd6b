import { NodekeeperError } from "../errors/index.ts";
import { parseQuantity, wholeUnits } from "./quantity.ts";

/**
 * Parses a size such as "4Mi" or "100k" into bytes, rounding up. Throws `invalid`, also for negative sizes and sizes
 * above 2^53-1.
 */
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

/**
 * Formats bytes for people, with one decimal below 100 of a unit and none above: 64225280 is "61.3Mi", 512 is "512".
 * Accepts any number.
 */
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
