import { randomUUID } from "node:crypto";
import {
  type AllocatedDevice,
  type DeepPartial,
  PrepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { CheckedPools, Device } from "../devices/index.ts";

/** A device that the driver streamed. */
export interface StreamedDevice {
  pool: string;
  device: Device;
}

/** Bytes that are no message: field 1 has more bytes than follow. */
export const malformedRequest = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 0x01]);

const CLAIM_NAMESPACE = "nodekeeper-conformance";

/**
 * Returns the devices that the scheduler could allocate together: valid ones, those without taints first, and one for
 * each counter set, because partitions may exclude each other.
 */
export function allocatable({ pools }: CheckedPools): StreamedDevice[] {
  const all = pools.flatMap(({ name, devices }) => devices.map(({ device }) => ({ pool: name, device })));
  const used = new Set<string>();
  return [...all.filter(({ device }) => !device.taints), ...all.filter(({ device }) => device.taints)].filter(
    ({ pool, device }) => {
      const sets = (device.consumesCounters ?? []).map(({ counterSet }) => `${pool} ${counterSet}`);
      if (sets.some((set) => used.has(set))) return false;
      for (const set of sets) used.add(set);
      return true;
    },
  );
}

/** Returns the allocation of a streamed device to a claim with one request. */
export function allocated(
  { pool, device }: StreamedDevice,
  configuration: string | undefined,
): DeepPartial<AllocatedDevice> {
  return {
    request: "devices",
    pool,
    device: device.name,
    ...(device.allowMultipleAllocations
      ? { shareId: randomUUID(), consumedCapacity: consumedOf(device) }
      : {}),
    configuration: configuration === undefined ? [] : [{ source: "FromClaim", parameters: configuration }],
    bindingConditions: device.bindingConditions ?? [],
    bindingFailureConditions: device.bindingFailureConditions ?? [],
  };
}

/** Returns the request to prepare a new claim of these devices, reserved for a pod. */
export function claimOf(devices: readonly DeepPartial<AllocatedDevice>[]): PrepareDevicesRequest {
  const uid = randomUUID();
  const name = `claim-${uid.slice(0, 8)}`;
  return PrepareDevicesRequest.fromPartial({
    claim: {
      namespace: CLAIM_NAMESPACE,
      name,
      uid,
      requests: [
        {
          name: "devices",
          deviceClassName: "conformance",
          allocationMode: "ExactCount",
          count: BigInt(devices.length),
        },
      ],
    },
    pods: [{ name: "pod", uid: randomUUID(), namespace: CLAIM_NAMESPACE, serviceAccount: "default" }],
    devices: [...devices],
  });
}

// Without an amount in the request, the scheduler takes the policy's default, or everything.
function consumedOf({ capacity = {} }: Device): Record<string, string> {
  return Object.fromEntries(
    Object.entries(capacity).map(([name, { value, requestPolicy }]) => [
      name,
      String(requestPolicy?.default ?? value),
    ]),
  );
}
