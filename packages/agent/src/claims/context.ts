import type { Clock, Logger, WorkQueue } from "@nodekeeper/core/lib";
import type { DeviceSettings } from "../devices/index.ts";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { CdiDirectory } from "./cdi-directory.ts";
import type { ClaimAllocations } from "./claim-allocations.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimRecords } from "./claim-records.ts";
import type { DeviceReader } from "./device-metadata.ts";
import type { DriverClient } from "./driver-client.ts";
import type { DriverStates } from "./driver-state.ts";
import type { HostFiles } from "./host-files.ts";

/** Reads pods from the container runtime. */
export type PodReader = Pick<PodLifecycleEventGenerator, "readNow">;

/** A connected driver. */
export interface ConnectedDriver {
  /** User ID that its sockets belong to. */
  uid: number;
  /** Undefined if its devices need no preparation. */
  client:
    | (Pick<DriverClient, "prepare" | "unprepare"> &
        Partial<Pick<DriverClient, "takesAccounts" | "restored">>)
    | undefined;
}

/** A call of the kubelet for one claim. */
export interface KubeletCall {
  /** Aborts when the call has ended. */
  signal: AbortSignal;
  /** Time until which the call may wait for drivers and containers, in monotonic milliseconds. */
  waitUntil: number;
}

/** State shared by the parts of this module. Deferred work is added to the queue, by driver name. */
export interface ClaimContext {
  records: ClaimRecords;
  allocations: ClaimAllocations;
  directory: CdiDirectory;
  host: HostFiles;
  drivers: { get(driver: string): { connection?: ConnectedDriver | undefined } | undefined };
  /** Reads devices for their metadata in containers; undefined: containers get none. */
  reportedDevice: DeviceReader | undefined;
  problems: Pick<ClaimProblems, "preparationFailed">;
  /** Drivers to reconcile. */
  queue: Pick<WorkQueue, "add" | "addAfter">;
  /** Pods as the container runtime reports them; undefined if `lifecycle.enabled` is false. */
  pods: PodReader | undefined;
  clock: Clock;
  log: Logger;
}

/** `ClaimContext` with the dependencies for handling drivers and the kubelet's calls. */
export interface DriverContext extends ClaimContext {
  drivers: DriverStates;
  settings: () => DeviceSettings;
  /** Aborts when the agent stops. */
  stop: AbortSignal;
}
