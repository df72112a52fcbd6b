import { setTimeout as sleep } from "node:timers/promises";
import type { DevicePool } from "@nodekeeper/sdk";

const MEMORY_GIB = 40;

/** So many simulated accelerators; every `intervalMs` the health of one of them changes. */
export async function* accelerators(
  count: number,
  intervalMs: number,
  signal: AbortSignal,
): AsyncGenerator<DevicePool[]> {
  const unhealthy = new Set<number>();
  for (let tick = 0; ; tick++) {
    yield [pool(count, unhealthy)];
    await sleep(intervalMs, undefined, { signal });
    const at = count > 0 ? tick % count : 0;
    if (!unhealthy.delete(at)) unhealthy.add(at);
  }
}

// Without a name the pool is called after the node.
function pool(count: number, unhealthy: ReadonlySet<number>): DevicePool {
  return {
    devices: Array.from({ length: count }, (_, at) => ({
      name: `accelerator-${at}`,
      attributes: {
        model: { string: at % 2 === 0 ? "alpha" : "beta" },
        driverVersion: { version: "1.4.2" },
        index: { int: BigInt(at) },
        numaNode: { int: BigInt(at % 2) },
        healthy: { bool: !unhealthy.has(at) },
      },
      capacity: { memory: { value: `${MEMORY_GIB}Gi` } },
    })),
  };
}
