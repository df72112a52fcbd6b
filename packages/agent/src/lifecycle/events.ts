import type { ContainerIdentity, PodIdentity } from "@nodekeeper/api/lifecycle";
import type { ContainerState } from "../runtime/index.ts";

/**
 * A container or sandbox started, exited or was removed. PodSync: a pod whose inspection failed was inspected
 * successfully again, or was removed before that.
 */
export type PodLifecycleEventType = "ContainerStarted" | "ContainerDied" | "ContainerRemoved" | "PodSync";

/** An event without a sequence number. */
export interface NewEvent {
  readonly type: PodLifecycleEventType;
  readonly pod: PodIdentity;
  /** Undefined for PodSync. */
  readonly container: ContainerIdentity | undefined;
  /** Exit code of a container that exited, if the runtime reported it. */
  readonly exitCode: number | undefined;
  /**
   * The runtime's reason for the exit, such as OOMKilled; empty if it reported none. For PodSync:
   * InspectionFailed if the pod was removed before it could be inspected.
   */
  readonly reason: string;
}

/** An event in the log. */
export interface PodLifecycleEvent extends NewEvent {
  /** Increases by one with each event, also across restarts of the agent if the log is persisted. */
  readonly sequence: number;
  /**
   * When the agent observed the event, milliseconds since the epoch. Use `sequence` for ordering: the wall
   * clock may jump.
   */
  readonly at: number;
}

/** Recorded state of a container. As in kubelet pleg/generic.go, `created` counts as `unknown`. */
export type RecordedState = "running" | "exited" | "unknown" | "missing";

/**
 * Returns the recorded state of a container. All CRI states other than `running` and `exited` map to `unknown`.
 * @param state undefined if the container is not listed, which maps to `missing`
 */
export function recordedState(state: ContainerState | undefined): RecordedState {
  if (state === undefined) return "missing";
  return state === "running" || state === "exited" ? state : "unknown";
}
