/** States of containers and sandboxes as CRI has them; what a newer runtime adds is `unknown`. */
export type ContainerState = "created" | "running" | "exited" | "unknown";

/** A container or sandbox as the lists show it: enough to see that something changed. */
export interface ListedContainer {
  id: string;
  /** The container's name in its pod; empty for a sandbox. */
  name: string;
  kind: "container" | "sandbox";
  /** A sandbox is `running` when ready, else `exited`. */
  state: ContainerState;
  /** How often the kubelet made it anew. */
  attempt: number;
  /** Nanoseconds since the epoch, as the runtime says. */
  createdAt: bigint;
}

/** A pod as the lists show it. */
export interface Pod {
  uid: string;
  name: string;
  namespace: string;
  /** Newest first. */
  sandboxes: readonly ListedContainer[];
  containers: readonly ListedContainer[];
}

export interface ContainerStatus extends ListedContainer {
  image: string;
  imageRef: string;
  /** Nanoseconds since the epoch; 0 when not started or finished. */
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  message: string;
}

export interface SandboxStatus extends ListedContainer {
  ips: readonly string[];
}

/** A pod as PodSandboxStatus and ContainerStatus show it. */
export interface PodStatus {
  uid: string;
  name: string;
  namespace: string;
  /** Of the newest sandbox. */
  ips: readonly string[];
  sandboxes: readonly SandboxStatus[];
  containers: readonly ContainerStatus[];
}

/** A hint from the runtime's event stream that something happened to a pod. Never a truth. */
export interface RuntimeHint {
  /** Empty where the runtime does not tell, and it can't be found out. */
  podUid: string;
  /** Nanoseconds since the epoch; may be stale or replayed. */
  createdAt: bigint;
  /** Containers of the pod that had exited when the event was made. */
  exits: readonly HintedExit[];
}

/** How a container ended, as an event has it. */
export interface HintedExit {
  containerId: string;
  exitCode: number;
  reason: string;
}

/** A call to the runtime that has no answer yet, and is due one. */
export interface CallInFlight {
  /** Of CRI, such as "ContainerStatus". */
  method: string;
  /** The container or sandbox that it is about. */
  id: string | undefined;
  /** The clock's monotonic milliseconds; of StopContainer, when the container's grace period was over. */
  startedAt: number;
}

export interface RuntimeVersion {
  runtimeName: string;
  runtimeVersion: string;
  runtimeApiVersion: string;
}

/** What the runtime says about itself, such as "RuntimeReady" and "NetworkReady". */
export interface RuntimeCondition {
  type: string;
  status: boolean;
  reason: string;
  message: string;
}

/**
 * The container runtime as the rooms above see it. Every call has a deadline; failures are NodekeeperErrors:
 * unavailable, deadline, exhausted (an answer over 16 MiB), unsupported, notFound, stopped.
 */
export interface Runtime {
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** Lists sandboxes and containers at once and groups them by pod. */
  listPods(signal: AbortSignal): Promise<Pod[]>;
  /** Lists the sandboxes and containers of one pod, by the label with its UID; undefined where there are none. */
  listPod(uid: string, signal: AbortSignal): Promise<Pod | undefined>;
  /** Reads every sandbox and container of a pod; one that vanished since the list is left out. */
  podStatus(pod: Pod, signal: AbortSignal): Promise<PodStatus>;
  /** The runtime's event stream as hints. Ends when the runtime ends it; throws `unsupported` where there is none. */
  hints(signal: AbortSignal): AsyncIterable<RuntimeHint>;
  /** How many connections to the runtime have come up; it grows when the runtime restarts, however quickly. */
  connections(): number;
  /** Calls that are due an answer and have none, the event stream left out. */
  callsInFlight(): readonly CallInFlight[];
}
