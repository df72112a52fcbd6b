/** CRI states of containers and sandboxes. States added by newer runtimes map to `unknown`. */
export type ContainerState = "created" | "running" | "exited" | "unknown";

/** A listed container or sandbox, with the fields needed to detect changes. */
export interface ListedContainer {
  id: string;
  /** Name of the container in its pod; empty for a sandbox. */
  name: string;
  kind: "container" | "sandbox";
  /** A sandbox is `running` if it is ready, and `exited` if not. */
  state: ContainerState;
  /** Restart count, as in the CRI metadata field `attempt`. */
  attempt: number;
  /** Creation time as reported by the runtime, nanoseconds since the epoch. */
  createdAt: bigint;
}

/** A listed pod. */
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
  /** Nanoseconds since the epoch; 0 if not started or finished. */
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  message: string;
}

export interface SandboxStatus extends ListedContainer {
  ips: readonly string[];
}

/** A pod's status from PodSandboxStatus and ContainerStatus. */
export interface PodStatus {
  uid: string;
  name: string;
  namespace: string;
  /** IPs of the newest sandbox. */
  ips: readonly string[];
  sandboxes: readonly SandboxStatus[];
  containers: readonly ContainerStatus[];
}

/** A container event of the runtime: a hint that a pod may have changed. */
export interface RuntimeHint {
  /** Empty if the runtime does not report the UID and it is not known from lists. */
  podUid: string;
  /** Nanoseconds since the epoch. Events may be stale or replayed. */
  createdAt: bigint;
  /** Containers of the pod that had exited when the event was sent. */
  exits: readonly HintedExit[];
}

/** Exit of a container as reported by an event. */
export interface HintedExit {
  containerId: string;
  exitCode: number;
  reason: string;
}

/** A call to the runtime that has not returned yet. */
export interface CallInFlight {
  /** CRI method, such as "ContainerStatus". */
  method: string;
  /** ID of the container or sandbox, if the call has one. */
  id: string | undefined;
  /**
   * Start of the call in monotonic milliseconds. For StopContainer, the end of the container's grace period.
   */
  startedAt: number;
}

export interface RuntimeVersion {
  runtimeName: string;
  runtimeVersion: string;
}

/**
 * The container runtime. Every call except `hints` has a deadline. Errors are NodekeeperErrors: unavailable,
 * deadline, exhausted (a response larger than runtime.maxMessageSize), unsupported, notFound, stopped.
 */
export interface Runtime {
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** Lists sandboxes and containers and groups them by pod. */
  listPods(signal: AbortSignal): Promise<readonly Pod[]>;
  /**
   * Lists the sandboxes and containers of one pod by the label with its UID. Returns undefined if there are
   * none.
   */
  listPod(uid: string, signal: AbortSignal): Promise<Pod | undefined>;
  /** Reads the status of all sandboxes and containers of a pod. Omits those removed since the list. */
  podStatus(pod: Pod, signal: AbortSignal): Promise<PodStatus>;
  /**
   * Returns the runtime's container events as hints. Ends when the runtime ends the stream. Throws
   * `unsupported` if the runtime does not implement events.
   */
  hints(signal: AbortSignal): AsyncIterable<RuntimeHint>;
  /** Number of connections established. Increases with every restart of the runtime. */
  connections(): number;
  /** Calls that have not returned yet, except the event stream. */
  callsInFlight(): readonly CallInFlight[];
}
