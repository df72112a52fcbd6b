import type {
  DeepPartial,
  DeviceDriverServiceImplementation,
  Pool,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";
import type {
  DeviceHealthReportServiceImplementation,
  DevicePreparationServiceImplementation,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { toServerError } from "@nodekeeper/core/grpc";
import type { LatestValue } from "@nodekeeper/core/lib";
import {
  type ClaimToPrepare,
  type ClaimToUnprepare,
  claimToPrepare,
  claimToUnprepare,
  type PreparedDevice,
  preparedDevice,
} from "./device-claim.ts";
import { deltaOf } from "./device-delta.ts";

import { ending } from "./services.ts";

/** The health of a device as its driver reports it. */
export interface DeviceHealth {
  /** The pool's name; the node's pool where it is absent. */
  pool?: string;
  device: string;
  healthy: boolean;
  /** For the status of pods; at most 1,024 characters. */
  message?: string;
  /** The effect of the taint that the device gets while it is not healthy; none where it is absent. */
  taintEffect?: "NoSchedule" | "NoExecute";
}

/** What an author prepares and undoes. What it throws fails the claim; its message reaches the pod's events. */
export interface Preparation {
  /** Makes devices usable; returns one entry for each device of the claim. Idempotent: it is called again for a claim. */
  prepare: (claim: ClaimToPrepare, signal: AbortSignal) => Promise<PreparedDevice[]> | PreparedDevice[];
  /** Undoes it. Idempotent; also called for claims that were never prepared. */
  unprepare: (claim: ClaimToUnprepare, signal: AbortSignal) => Promise<void> | void;
}

/**
 * Devices from the latest value; streams wait for the first one, and end when `stop` aborts. An agent that accepts deltas
 * gets the whole state once, and then what has changed since the value that it got before.
 */
export function deviceService(
  latest: LatestValue<DeepPartial<Pool>[]>,
  stop: AbortSignal,
): DeviceDriverServiceImplementation {
  return {
    async *listAndWatchDevices({ acceptsDeltas }, { signal }) {
      const either = AbortSignal.any([signal, stop]);
      let sent: { revision: bigint; value: DeepPartial<Pool>[] } | undefined;
      for (let seen = 0; ; ) {
        const { number, value } = await ending(stop, latest.after(seen, either));
        seen = number;
        const pools = acceptsDeltas && sent ? deltaOf(sent.value, value) : undefined;
        // Where nothing has changed, the agent's state stays that of the revision before.
        if (pools?.length === 0) continue;
        const revision = BigInt(number);
        const before = sent;
        // Authors may add to the lists that they yielded, and yield them again.
        sent = { revision, value: value.map((pool) => ({ ...pool, devices: [...(pool.devices ?? [])] })) };
        yield before && pools
          ? { revision, delta: { baseRevision: before.revision, pools } }
          : { revision, pools: value };
      }
    },
  };
}

/** The author's preparation as a service. What it throws is answered with its message. */
export function preparationService({
  prepare,
  unprepare,
}: Preparation): DevicePreparationServiceImplementation {
  return {
    async prepareDevices(request, { signal }) {
      try {
        const devices = await prepare(claimToPrepare(request), signal);
        return { devices: devices.map(preparedDevice) };
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
  };
}

/** Health from the latest value; streams wait for the first one, and end when `stop` aborts. */
export function deviceHealthService(
  latest: LatestValue<DeviceHealth[]>,
  stop: AbortSignal,
): DeviceHealthReportServiceImplementation {
  return {
    async *watchDeviceHealth(_request, { signal }) {
      const either = AbortSignal.any([signal, stop]);
      for (let seen = 0; ; ) {
        const { number, value } = await ending(stop, latest.after(seen, either));
        seen = number;
        yield { devices: value };
      }
    },
  };
}
