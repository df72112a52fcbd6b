import type { ContainerState } from "../runtime/index.ts";

/** What a consumer can be told: a container or sandbox started, died, was removed; or a pod can be read again. */
export type PodLifecycleEventType = "ContainerStarted" | "ContainerDied" | "ContainerRemoved" | "PodSync";

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

/** An event before it has its place in the log. */
export interface NewEvent {
  readonly type: PodLifecycleEventType;
  readonly pod: PodIdentity;
  /** The container or sandbox; undefined for PodSync. */
  readonly container: ContainerIdentity | undefined;
  /** Of a container that died, where the runtime could still tell. */
  readonly exitCode: number | undefined;
  /** The runtime's word for why it died, such as OOMKilled; empty where it said none. */
  readonly reason: string;
}

/** An event of the log. */
export interface PodLifecycleEvent extends NewEvent {
  /** Counts up by one, over restarts of the agent too where the log is kept. */
  readonly sequence: number;
  /** When the agent saw it, wall milliseconds. The order of events is that of `sequence`: this clock may jump. */
  readonly at: number;
}

/** What the records know of a container: `created` is not told from `unknown`, as in the kubelet. */
export type RecordedState = "running" | "exited" | "unknown" | "missing";

/** @param state a state of CRI, or undefined for a container that is in no list; any other word is `unknown` */
export function recordedState(state: ContainerState | undefined): RecordedState {
  if (state === undefined) return "missing";
  return state === "running" || state === "exited" ? state : "unknown";
}
