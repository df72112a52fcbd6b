import {
  ContainerKind,
  type Event as EventMessage,
  EventType,
  type PodIdentity as IdentityMessage,
  type Pod as PodMessage,
  type PodStatus as PodStatusMessage,
  State,
  type ContainerStatus as StatusMessage,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import type { PodCacheEntry, PodLifecycleEvent, PodLifecycleEventType } from "../lifecycle/index.ts";
import type {
  ContainerState,
  ContainerStatus,
  ListedContainer,
  Pod,
  SandboxStatus,
} from "../runtime/index.ts";

const eventTypes: Record<PodLifecycleEventType, EventType> = {
  ContainerStarted: EventType.CONTAINER_STARTED,
  ContainerDied: EventType.CONTAINER_DIED,
  ContainerRemoved: EventType.CONTAINER_REMOVED,
  PodSync: EventType.POD_SYNC,
};

const states: Record<ContainerState, State> = {
  created: State.CREATED,
  running: State.RUNNING,
  exited: State.EXITED,
  unknown: State.UNKNOWN,
};

const NANOSECONDS_PER_MILLISECOND = 1_000_000n;

/** An event in the form of the gRPC API. */
export function eventMessage(event: PodLifecycleEvent, status: PodStatusMessage | undefined): EventMessage {
  const { container } = event;
  return {
    sequence: BigInt(event.sequence),
    type: eventTypes[event.type],
    at: BigInt(event.at),
    pod: identityMessage(event.pod),
    container: container && { id: container.id, name: container.name, kind: kindOf(container) },
    exitCode: event.exitCode,
    reason: event.reason,
    status,
  };
}

/** A pod of a snapshot. */
export function podMessage(pod: Pod, status: PodStatusMessage | undefined): PodMessage {
  const containers = [...pod.sandboxes, ...pod.containers].map((container) => ({
    container: { id: container.id, name: container.name, kind: kindOf(container) },
    state: states[container.state],
    attempt: container.attempt,
  }));
  return { pod: identityMessage(pod), containers, status };
}

/** @param observedAt wall-clock time, milliseconds */
export function podStatusMessage({ status, error }: PodCacheEntry, observedAt: number): PodStatusMessage {
  return {
    pod: identityMessage(status),
    ips: [...status.ips],
    sandboxes: status.sandboxes.map((sandbox) => statusMessage(sandbox)),
    containers: status.containers.map((container) => statusMessage(container, container)),
    observedAt: BigInt(Math.round(observedAt)),
    error: error?.message ?? "",
  };
}

function statusMessage(listed: ContainerStatus | SandboxStatus, more?: ContainerStatus): StatusMessage {
  return {
    container: { id: listed.id, name: listed.name, kind: kindOf(listed) },
    state: states[listed.state],
    attempt: listed.attempt,
    createdAt: listed.createdAt / NANOSECONDS_PER_MILLISECOND,
    startedAt: (more?.startedAt ?? 0n) / NANOSECONDS_PER_MILLISECOND,
    finishedAt: (more?.finishedAt ?? 0n) / NANOSECONDS_PER_MILLISECOND,
    exitCode: more?.exitCode ?? 0,
    reason: more?.reason ?? "",
    message: more?.message ?? "",
    image: more?.image ?? "",
    imageRef: more?.imageRef ?? "",
  };
}

function identityMessage({ uid, namespace, name }: IdentityMessage): IdentityMessage {
  return { uid, namespace, name };
}

function kindOf({ kind }: Pick<ListedContainer, "kind">): ContainerKind {
  return kind === "sandbox" ? ContainerKind.SANDBOX : ContainerKind.CONTAINER;
}
