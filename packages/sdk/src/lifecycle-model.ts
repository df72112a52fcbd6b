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

/** What can happen to a pod. `Unknown`: of an agent newer than this library. */
export type PodLifecycleEventType =
  | "ContainerStarted"
  | "ContainerDied"
  | "ContainerRemoved"
  | "PodSync"
  | "Unknown";

export type ContainerState = "created" | "running" | "exited" | "unknown";

export interface PodIdentity {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

export interface ContainerIdentity {
  readonly id: string;
  /** Empty for a sandbox. */
  readonly name: string;
  readonly kind: "container" | "sandbox";
}

/** A container or sandbox. Times are milliseconds since the epoch; undefined for what has not happened. */
export interface ContainerStatus extends ContainerIdentity {
  readonly state: ContainerState;
  readonly attempt: number;
  readonly createdAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** Of a container that has exited. */
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
  /** Why the newest reading failed: what is shown is older. Empty when it did not. */
  readonly error: string;
}

/** The pods of the node, and how far they can be relied on. */
export interface PodList {
  readonly pods: readonly PodStatus[];
  /** Every event up to this cursor is in what the pods show: watch({ cursor }) continues from here. */
  readonly cursor: string;
  /** When the last list of the runtime that succeeded started, milliseconds since the epoch. */
  readonly listedAt: number;
  /** What is wrong with the container runtime, or slow, now; what is shown may be out of date then. */
  readonly problems: readonly string[];
}

export interface PodLifecycleEvent {
  /** Counts up by one in the agent's log. */
  readonly sequence: number;
  readonly type: PodLifecycleEventType;
  /** When the agent saw it, milliseconds since the epoch. */
  readonly at: number;
  readonly pod: PodIdentity;
  /** Undefined for PodSync. */
  readonly container: ContainerIdentity | undefined;
  /** Of a container that died, where the runtime could still report it. */
  readonly exitCode: number | undefined;
  /** The runtime's word for why it died, such as "OOMKilled". */
  readonly reason: string;
  /** The pod's newest status, where it was asked for and the pod is still there. */
  readonly status: PodStatus | undefined;
}

/** A pod of a snapshot. */
export interface ListedPod extends PodIdentity {
  readonly containers: readonly (ContainerIdentity & { state: ContainerState; attempt: number })[];
  readonly status: PodStatus | undefined;
}

/** What a watch yields. Keep `cursor` to continue after an item later. */
export type PodLifecycleItem =
  | { readonly kind: "event"; readonly cursor: string; readonly event: PodLifecycleEvent }
  | {
      readonly kind: "snapshot";
      readonly cursor: string;
      /** `begin`: no cursor was given. `fellOff`: events after the cursor have expired; continue from these pods. */
      readonly why: "begin" | "fellOff";
      /** How many events were missed; undefined where the agent can't know. */
      readonly missed: number | undefined;
      readonly pods: readonly ListedPod[];
    }
  /** Nothing of interest happened up to the cursor. */
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

/** An answer of a watch that is no batch. */
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
