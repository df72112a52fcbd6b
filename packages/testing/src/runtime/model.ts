import type { ContainerEventType, ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";

/** Identity of a pod. */
export interface PodIdentity {
  uid: string;
  name: string;
  namespace: string;
}

/** State of a container. Times are in nanoseconds since the epoch; 0 if not applicable. */
export interface SimulatedContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly pod: PodIdentity;
  readonly name: string;
  readonly attempt: number;
  readonly image: string;
  readonly createdAt: bigint;
  state: ContainerState;
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  /** Memory usage in its stats, in bytes. */
  memoryBytes: number;
  /** Time from SIGTERM until it exits, in milliseconds. */
  stopAfterMs: number;
}

/** State of a sandbox. */
export interface SimulatedSandbox {
  readonly id: string;
  readonly pod: PodIdentity;
  readonly attempt: number;
  readonly createdAt: bigint;
  readonly ips: readonly string[];
  isReady: boolean;
}

/** An event as sent by GetContainerEvents. */
export interface SimulatedEvent {
  /** ID of the container or sandbox. */
  readonly id: string;
  readonly type: ContainerEventType;
  readonly at: bigint;
  readonly pod: PodIdentity;
  /** State at the time of the event. Undefined if the sandbox was removed. */
  readonly sandbox: Readonly<SimulatedSandbox> | undefined;
  /** State at the time of the event. Undefined for a sandbox or if the container was removed. */
  readonly container: Readonly<SimulatedContainer> | undefined;
}

/** Parameters of a container to create. */
export interface ContainerRequest {
  name: string;
  image?: string;
  attempt?: number;
  memoryBytes?: number;
  stopAfterMs?: number;
}
