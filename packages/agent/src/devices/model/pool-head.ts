import type { CheckedPool } from "./checked.ts";
import type { ExaminedDevice } from "./examine-device.ts";
import { featuresIn } from "./feature-bits.ts";
import { limits } from "./limits.ts";
import { isBeyondNode } from "./model.ts";
import { checkDevices } from "./validate.ts";

/** The devices of a large pool's first slice, known before the others are read. */
export interface PoolHead {
  /** The pool with these devices only. They need no features. */
  pool: CheckedPool;
  /** Number of slices of the whole pool, unless devices turn out to be invalid or to need smaller slices. */
  slices: number;
}

// Smaller pools are read in a few milliseconds.
const FEWEST_SLICES = 8;

/** Returns how many devices the head of a pool has. Undefined for a pool that is not large. */
export function headSizeOf(devices: number): number | undefined {
  const slices = slicesOf(devices);
  return slices < FEWEST_SLICES ? undefined : Math.floor(devices / slices);
}

/**
 * Returns the head of a pool. Undefined if one of its devices is invalid, if it needs features, which the server may
 * not store, or if the pool is one beyond the node, which another agent may publish.
 * @param devices number of devices of the whole pool
 */
export function headOf(
  { name, fields }: Pick<CheckedPool, "name" | "fields">,
  examined: readonly ExaminedDevice[],
  devices: number,
): PoolHead | undefined {
  if (isBeyondNode(fields)) return undefined;
  const valid = checkDevices(name, examined, examined.length, () => {});
  const pool = { name, fields, devices: valid, counterSets: [] };
  if (valid.length < examined.length || featuresIn({ pools: [pool] }).length > 0) return undefined;
  return { pool, slices: slicesOf(devices) };
}

function slicesOf(devices: number): number {
  return Math.ceil(devices / limits.devicesPerSlice);
}
