import { BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  type DeepPartial,
  Device,
  DeviceDriverDefinition,
  ListAndWatchDevicesRequest,
  Pool,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  type DeviceHealthReportServiceImplementation,
  DevicePreparationDefinition,
  type DevicePreparationServiceImplementation,
  type DeviceStatusReportServiceImplementation,
  WatchDeviceStatusResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { toServerError } from "@nodekeeper/core/grpc";
import type { LatestValue } from "@nodekeeper/core/lib";
import type { Server } from "nice-grpc";
import {
  type ClaimToPrepare,
  type ClaimToUnprepare,
  checkOlderAgent,
  claimToPrepare,
  claimToUnprepare,
  type PreparedClaim,
  type PreparedDevice,
  prepareResponse,
  type RecordedClaim,
  recordedClaims,
} from "./device-claim.ts";
import { valuesOf } from "./services.ts";

// Tags of ListAndWatchDevicesResponse.pools and Pool.devices, which are length-delimited.
const POOLS = (1 << 3) | 2;
const DEVICES = (2 << 3) | 2;

/** The health of a device as its driver reports it. */
export interface DeviceHealth {
  /** Name of the pool. Default: the node's pool. */
  pool?: string;
  device: string;
  healthy: boolean;
  /** Shown in the status of pods; at most 1,024 characters. */
  message?: string;
  /** Effect of the taint added to the device while it is unhealthy. Default: no taint. */
  taintEffect?: "NoSchedule" | "NoExecute";
}

/** The status of an allocated device as its driver reports it, for `status.devices` of the ResourceClaim. */
export interface DeviceStatus {
  claimUid: string;
  /** Name of the pool. Default: the node's pool. */
  pool?: string;
  device: string;
  /** As allocated, for a device that is shared. */
  shareId?: string;
  /** At most 8, with unique types. The agent sets `lastTransitionTime`. */
  conditions?: DeviceCondition[];
  /** Any JSON object, at most 10 KiB. */
  data?: Readonly<Record<string, unknown>>;
  /** For network devices. */
  networkData?: NetworkData;
}

export interface DeviceCondition {
  type: string;
  status: "True" | "False" | "Unknown";
  /** A CamelCase word. */
  reason: string;
  message?: string;
  /** The generation of the author's own object that the condition is about. Default: none. */
  observedGeneration?: number | bigint;
}

export interface NetworkData {
  /** Name in the pod's network namespace. */
  interfaceName?: string;
  /** In CIDR notation, such as "192.0.2.5/24"; at most 16. */
  ips?: string[];
  /** Such as a MAC address. */
  hardwareAddress?: string;
}

/**
 * How an author prepares and unprepares devices. An error that is thrown fails the claim; its message reaches the pod's
 * Events.
 */
export interface Preparation {
  /**
   * Prepares devices. Returns one entry for each device of the claim, with edits for the whole claim if there are any.
   * Must be idempotent, because it is called again for a claim.
   */
  prepare: (
    claim: ClaimToPrepare,
    signal: AbortSignal,
  ) => Promise<PreparedDevice[] | PreparedClaim> | PreparedDevice[] | PreparedClaim;
  /** Unprepares devices. Must be idempotent, and is also called for claims that were never prepared. */
  unprepare: (claim: ClaimToUnprepare, signal: AbortSignal) => Promise<void> | void;
  /**
   * Called with all recorded claims each time the agent connects, if there are any. The driver therefore needs no
   * checkpoint of its own. Returns the UIDs of prepared claims that must be prepared again, because their preparation
   * is lost. Default: none.
   */
  restore?: (claims: RecordedClaim[], signal: AbortSignal) => Promise<string[]> | string[];
}

/** API packages in which a driver serves its services. Older agents know only the first. */
export const contracts = ["nodekeeper.devices.v1alpha1", "nodekeeper.devices.v1alpha2"] as const;

/** Returns the definitions of a service in all packages. */
export function inEachContract<T extends { name: string; fullName: string }>(definition: T): T[] {
  return contracts.map((contract) => ({ ...definition, fullName: `${contract}.${definition.name}` }));
}

// Sends responses as bytes, so that unchanged devices are not encoded again.
const devicesDefinition = (service: string) =>
  ({
    listAndWatchDevices: {
      path: `/${service}/ListAndWatchDevices`,
      requestStream: false,
      responseStream: true,
      requestSerialize: (request: ListAndWatchDevicesRequest) =>
        ListAndWatchDevicesRequest.encode(request).finish(),
      requestDeserialize: (bytes: Uint8Array) => ListAndWatchDevicesRequest.decode(bytes),
      responseSerialize: (bytes: Uint8Array) => bytes,
      responseDeserialize: (bytes: Uint8Array) => bytes,
      options: {},
    },
  }) as const;

/** Serves devices from the latest value. Streams wait for the first value, and end when `stop` aborts. */
export function addDeviceService(
  server: Server,
  latest: LatestValue<DeepPartial<Pool>[]>,
  encode: ReturnType<typeof deviceEncoder>,
  stop: AbortSignal,
): void {
  for (const { fullName } of inEachContract(DeviceDriverDefinition))
    server.add(devicesDefinition(fullName), {
      async *listAndWatchDevices(_request, { signal }) {
        for await (const pools of valuesOf(latest, signal, stop)) yield encode(pools);
      },
    });
}

/**
 * Returns a function that encodes a response. A device that is the same object as in an earlier response is not encoded
 * again: with one of 10,000 devices changed, a response takes 9 ms instead of 40 ms.
 */
export function deviceEncoder(): (pools: readonly DeepPartial<Pool>[]) => Uint8Array {
  const known = new WeakMap<DeepPartial<Device>, Uint8Array>();
  const bytesOf = (device: DeepPartial<Device>): Uint8Array => {
    const bytes = known.get(device) ?? Device.encode(Device.fromPartial(device)).finish();
    known.set(device, bytes);
    return bytes;
  };
  return (pools) => {
    const writer = new BinaryWriter();
    for (const { devices = [], ...fields } of pools) {
      writer.uint32(POOLS).fork();
      Pool.encode(Pool.fromPartial(fields), writer);
      for (const device of devices) writer.uint32(DEVICES).bytes(bytesOf(device));
      writer.join();
    }
    return writer.finish();
  };
}

/**
 * Serves the author's preparation. Errors are returned with their message.
 * @param service the full name under which it is served
 */
export function preparationService(
  { prepare, unprepare, restore = () => [] }: Preparation,
  service: string,
): DevicePreparationServiceImplementation {
  return {
    async prepareDevices(request, { signal }) {
      try {
        const response = prepareResponse(await prepare(claimToPrepare(request), signal));
        if (service !== DevicePreparationDefinition.fullName) checkOlderAgent(response);
        return response;
      } catch (error) {
        throw toServerError(error);
      }
    },
    async unprepareDevices(request, { signal }) {
      try {
        await unprepare(claimToUnprepare(request), signal);
        return {};
      } catch (error) {
        throw toServerError(error);
      }
    },
    async restoreClaims(request, { signal }) {
      try {
        return { prepareAgain: await restore(recordedClaims(request), signal) };
      } catch (error) {
        throw toServerError(error);
      }
    },
  };
}

/** Serves health from the latest value. Streams wait for the first value, and end when `stop` aborts. */
export function deviceHealthService(
  latest: LatestValue<DeviceHealth[]>,
  stop: AbortSignal,
): DeviceHealthReportServiceImplementation {
  return {
    async *watchDeviceHealth(_request, { signal }) {
      for await (const devices of valuesOf(latest, signal, stop)) yield { devices };
    },
  };
}

/**
 * Serves the status of allocated devices from the latest value. See `deviceHealthService`.
 * @param onAsked called when the agent asks for it
 */
export function deviceStatusService(
  latest: LatestValue<DeviceStatus[]>,
  onAsked: () => void,
  stop: AbortSignal,
): DeviceStatusReportServiceImplementation {
  return {
    async *watchDeviceStatus(_request, { signal }) {
      onAsked();
      for await (const devices of valuesOf(latest, signal, stop)) yield statusResponse(devices);
    },
  };
}

function statusResponse(devices: readonly DeviceStatus[]) {
  return {
    devices: devices.map(({ data, conditions = [], ...each }) => ({
      ...each,
      data: data ? JSON.stringify(data) : "",
      conditions: conditions.map(({ observedGeneration = 0, ...condition }) => ({
        ...condition,
        observedGeneration: BigInt(observedGeneration),
      })),
    })),
  };
}

/** Throws if these can't be encoded, such as data with a bigint. */
export function checkStatus(devices: readonly DeviceStatus[]): void {
  WatchDeviceStatusResponse.encode(WatchDeviceStatusResponse.fromPartial(statusResponse(devices)));
}
