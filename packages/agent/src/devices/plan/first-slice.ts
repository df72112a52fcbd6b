import type { PoolHead } from "../model/pool-head.ts";
import type { PoolPlan } from "./plan.ts";
import { nameSuffix, poolKey, sliceName } from "./slice-names.ts";

/**
 * Plans the first slice of a large pool that has no slices yet. The slice announces all slices of the pool, at least 8
 * (`headSizeOf`), so readers wait for the others. If the pool turns out to have another number of slices, `planSlices`
 * raises its generation.
 */
export function planFirstSlice(driver: string, nodeName: string, { pool, slices }: PoolHead): PoolPlan {
  const { name, fields, devices } = pool;
  const write = {
    stored: undefined,
    name: sliceName(0, nameSuffix(driver, nodeName, poolKey(name))),
    spec: {
      driver,
      pool: { name, generation: 1, resourceSliceCount: slices },
      nodeName,
      ...fields,
      devices: devices.map(({ device }) => device),
    },
    devices,
    counterSets: [],
    isChanged: true,
  };
  return { pool: name, isAllocatable: false, rises: true, deletes: [], writes: [write], outdated: [] };
}
