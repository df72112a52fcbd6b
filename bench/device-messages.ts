import { ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import type { DevicePool } from "@nodekeeper/sdk";

export const DEVICES = 10_000;
export const BENCH_NODE = "bench";

/** A pool of so many devices; the one in the middle has the tick among its attributes. */
export function devicePool(count: number, tick = 0): DevicePool {
  return {
    name: BENCH_NODE,
    devices: Array.from({ length: count }, (_, at) => ({
      name: `accelerator-${at}`,
      attributes: {
        model: { string: "alpha" },
        driverVersion: { version: "1.4.2" },
        index: { int: BigInt(at) },
        numaNode: { int: BigInt(at % 2) },
        changes: { int: BigInt(at === count >> 1 ? tick : 0) },
        healthy: { bool: true },
      },
      capacity: { memory: { value: "40Gi" }, cores: { value: "108" } },
    })),
  };
}

/** A driver's message with `DEVICES` of them. */
export function messageBytes(tick: number): Uint8Array {
  const message = ListAndWatchDevicesResponse.fromPartial({ pools: [devicePool(DEVICES, tick)] });
  return ListAndWatchDevicesResponse.encode(message).finish();
}
