import { shortHash } from "../model/mapped-names.ts";

/*
 * Slices are named "<index>-<driver>-<node>-<hash>". The scheduler goes through slices in the order of their names,
 * so the index comes first, in as many hexadecimal digits for all. A name is fixed by what it stands for, so that a
 * second creation of the same slice meets the first one instead of making a twin.
 */

/** Indices of slices with devices are below this one, those of slices with counters at or above. */
export const firstCounterIndex = 0xf0000;

const DIGITS = 5;
const LONGEST_NAME = 253;

/** What the slices of one pool have in common in their names. */
export function nameSuffix(driver: string, nodeName: string, poolKey: string): string {
  const digest = shortHash(JSON.stringify([driver, nodeName, poolKey]));
  const room = LONGEST_NAME - DIGITS - digest.length - 2;
  const readable = `${driver}-${nodeName}`
    .toLowerCase()
    .slice(0, room)
    .replace(/[-.]+$/, "");
  return `${readable}-${digest}`;
}

/** What distinguishes the names of a pool's slices from those of the driver's other pools. */
export function poolKey(pool: string): string {
  return `node/${pool}`;
}

export function sliceName(index: number, suffix: string): string {
  return `${index.toString(16).padStart(DIGITS, "0")}-${suffix}`;
}

/** The index of a name of this form, made here or by another publisher that numbers its slices so. */
export function indexOfName(name: string): number | undefined {
  const match = /^([0-9a-f]{5})-/.exec(name);
  return match ? Number.parseInt(match[1]!, 16) : undefined;
}
