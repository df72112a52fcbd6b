import type { ContainerEventType, ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";

/** Who a pod is. */
export interface PodIdentity {
  uid: string;
  name: string;
  namespace: string;
}

/** A container as the runtime keeps it. Times are nanoseconds since the epoch, 0 for what has not happened. */
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
  /** What its stats show, bytes. */
  memoryBytes: number;
  /** How long it takes to end after SIGTERM, milliseconds. */
  stopAfterMs: number;
}

/** A sandbox as the runtime keeps it. */
export interface SimulatedSandbox {
  readonly id: string;
  readonly pod: PodIdentity;
  readonly attempt: number;
  readonly createdAt: bigint;
  readonly ips: readonly string[];
  isReady: boolean;
}

/** What happened, as GetContainerEvents sends it. */
export interface SimulatedEvent {
  /** Of the container or sandbox. */
  readonly id: string;
  readonly type: ContainerEventType;
  readonly at: bigint;
  readonly pod: PodIdentity;
  /** As it was then; undefined once it is removed. */
  readonly sandbox: Readonly<SimulatedSandbox> | undefined;
  /** The same of the container; undefined for a sandbox. */
  readonly container: Readonly<SimulatedContainer> | undefined;
}

/** A container to be made. */
export interface ContainerRequest {
  name: string;
  image?: string;
  attempt?: number;
  memoryBytes?: number;
  stopAfterMs?: number;
}
