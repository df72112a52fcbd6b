import { shortHash } from "../model/mapped-names.ts";

/*
 * Slices are named "<index>-<driver>-<node>-<hash>", with "cluster" for the node in pools beyond the node.
 * The scheduler visits slices in name order, so the index comes first, with a fixed number of hexadecimal
 * digits. Names are deterministic: creating a slice twice conflicts instead of adding a duplicate.
 */

/** Slices with devices have indices below this one, slices with counters at or above it. */
export const firstCounterIndex = 0xf0000;

const DIGITS = 5;
const LONGEST_NAME = 253;

/**
 * Returns the suffix that the names of a pool's slices share.
 * @param nodeName undefined for pools beyond the node, whose slices have the same names on all nodes
 */
export function nameSuffix(driver: string, nodeName: string | undefined, poolKey: string): string {
  const digest = shortHash(JSON.stringify([driver, nodeName ?? null, poolKey]));
  const room = LONGEST_NAME - DIGITS - digest.length - 2;
  const readable = `${driver}-${nodeName ?? "cluster"}`
    .toLowerCase()
    .slice(0, room)
    .replace(/[-.]+$/, "");
  return `${readable}-${digest}`;
}

/** Returns the key that distinguishes the names of a pool's slices from those of the driver's other pools. */
export function poolKey(pool: string): string {
  return `node/${pool}`;
}

export function sliceName(index: number, suffix: string): string {
  return `${index.toString(16).padStart(DIGITS, "0")}-${suffix}`;
}

/** Returns the index in a name of this form, also if another publisher chose it. Undefined for other names. */
export function indexOfName(name: string): number | undefined {
  const match = /^([0-9a-f]{5})-/.exec(name);
  return match ? Number.parseInt(match[1]!, 16) : undefined;
}
