import type { ContainerIdentity, PodIdentity } from "@nodekeeper/api/lifecycle";
import {
  ContainerKind,
  type Event as EventMessage,
  EventType,
  type PodStatus as PodStatusMessage,
  Snapshot_Why,
  type Snapshot as SnapshotMessage,
  State,
  type ContainerStatus as StatusMessage,
  type WatchResponse,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
/** Types of pod lifecycle events. `Unknown`: from an agent newer than this library. */
export type PodLifecycleEventType =
  | "ContainerStarted"
  | "ContainerDied"
  | "ContainerRemoved"
  | "PodSync"
  | "Unknown";

export type ContainerState = "created" | "running" | "exited" | "unknown";

export type { ContainerIdentity, PodIdentity };

/** A container or sandbox. Times are milliseconds since the epoch; undefined if it has not happened. */
export interface ContainerStatus extends ContainerIdentity {
  readonly state: ContainerState;
  readonly attempt: number;
  readonly createdAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** Undefined unless the container has exited. */
  readonly exitCode: number | undefined;
  readonly reason: string;
  readonly message: string;
  readonly image: string;
  readonly imageRef: string;
}

/** A pod as the agent last read it from the container runtime. */
export interface PodStatus extends PodIdentity {
  readonly ips: readonly string[];
  /** Newest first. */
  readonly sandboxes: readonly ContainerStatus[];
  readonly containers: readonly ContainerStatus[];
  /** Milliseconds since the epoch. */
  readonly observedAt: number;
  /** Why the last read failed, so that the status is older. Empty if it succeeded. */
  readonly error: string;
}

/** The pods of the node, and how current they are. */
export interface PodList {
  readonly pods: readonly PodStatus[];
  /** The pods reflect all events up to this cursor: watch({ cursor }) continues from here. */
  readonly cursor: string;
  /** When the last successful list of the runtime's pods started, milliseconds since the epoch. */
  readonly listedAt: number;
  /** Current failures and delays of the container runtime. If there are any, the pods may be out of date. */
  readonly problems: readonly string[];
}

export interface PodLifecycleEvent {
  /** Increases by one per event of the agent. */
  readonly sequence: number;
  readonly type: PodLifecycleEventType;
  /** When the agent observed it, milliseconds since the epoch. */
  readonly at: number;
  readonly pod: PodIdentity;
  /** Undefined for PodSync. */
  readonly container: ContainerIdentity | undefined;
  /** For ContainerDied, if the runtime could still report it. */
  readonly exitCode: number | undefined;
  /**
   * For ContainerDied, the reason from the runtime, such as "OOMKilled". For PodSync: "InspectionFailed" if the pod was
   * removed before it could be inspected.
   */
  readonly reason: string;
  /** The pod's latest status, if it was requested and the pod still exists. */
  readonly status: PodStatus | undefined;
}

/** A pod of a snapshot. */
export interface ListedPod extends PodIdentity {
  readonly containers: readonly (ContainerIdentity & { state: ContainerState; attempt: number })[];
  readonly status: PodStatus | undefined;
}

/** An item of a watch. Store `cursor` to continue after the item later. */
export type PodLifecycleItem =
  | { readonly kind: "event"; readonly cursor: string; readonly event: PodLifecycleEvent }
  | {
      readonly kind: "snapshot";
      readonly cursor: string;
      /** `begin`: no cursor was set. `fellOff`: events after the cursor have expired; continue from these pods. */
      readonly why: "begin" | "fellOff";
      /** Number of missed events; undefined if unknown. */
      readonly missed: number | undefined;
      readonly pods: readonly ListedPod[];
    }
  /** No matching event occurred up to the cursor. */
  | { readonly kind: "bookmark"; readonly cursor: string };

const eventTypes: Partial<Record<number, PodLifecycleEventType>> = {
  [EventType.CONTAINER_STARTED]: "ContainerStarted",
  [EventType.CONTAINER_DIED]: "ContainerDied",
  [EventType.CONTAINER_REMOVED]: "ContainerRemoved",
  [EventType.POD_SYNC]: "PodSync",
};

const states: Partial<Record<number, ContainerState>> = {
  [State.CREATED]: "created",
  [State.RUNNING]: "running",
  [State.EXITED]: "exited",
};

const noPod: PodIdentity = { uid: "", namespace: "", name: "" };

/** Converts a watch response that is not a batch. */
export function itemOf({ cursor, event, snapshot }: WatchResponse): PodLifecycleItem {
  if (event) return { kind: "event", cursor, event: eventOf(event) };
  if (snapshot) return snapshotOf(cursor, snapshot);
  return { kind: "bookmark", cursor };
}

function eventOf(message: EventMessage): PodLifecycleEvent {
  return {
    sequence: Number(message.sequence),
    type: eventTypes[message.type] ?? "Unknown",
    at: Number(message.at),
    pod: message.pod ?? noPod,
    container: message.container && identityOf(message.container),
    exitCode: message.exitCode,
    reason: message.reason,
    status: message.status && podStatusOf(message.status),
  };
}

function snapshotOf(cursor: string, { why, missed, pods }: SnapshotMessage): PodLifecycleItem {
  return {
    kind: "snapshot",
    cursor,
    why: why === Snapshot_Why.BEGIN ? "begin" : "fellOff",
    missed: missed === undefined ? undefined : Number(missed),
    pods: pods.map(({ pod, containers, status }) => ({
      ...(pod ?? noPod),
      containers: containers.map(({ container, state, attempt }) => ({
        ...identityOf(container),
        state: states[state] ?? "unknown",
        attempt,
      })),
      status: status && podStatusOf(status),
    })),
  };
}

export function podStatusOf(message: PodStatusMessage): PodStatus {
  return {
    ...(message.pod ?? noPod),
    ips: message.ips,
    sandboxes: message.sandboxes.map(containerStatusOf),
    containers: message.containers.map(containerStatusOf),
    observedAt: Number(message.observedAt),
    error: message.error,
  };
}

function containerStatusOf(message: StatusMessage): ContainerStatus {
  const { container, state, attempt, reason, image, imageRef } = message;
  return {
    ...identityOf(container),
    state: states[state] ?? "unknown",
    attempt,
    createdAt: timeOf(message.createdAt),
    startedAt: timeOf(message.startedAt),
    finishedAt: timeOf(message.finishedAt),
    exitCode: state === State.EXITED ? message.exitCode : undefined,
    reason,
    message: message.message,
    image,
    imageRef,
  };
}

function identityOf(
  container: { id: string; name: string; kind: ContainerKind } | undefined,
): ContainerIdentity {
  const { id = "", name = "", kind } = container ?? {};
  return { id, name, kind: kind === ContainerKind.SANDBOX ? "sandbox" : "container" };
}

function timeOf(milliseconds: bigint): number | undefined {
  return milliseconds === 0n ? undefined : Number(milliseconds);
}
