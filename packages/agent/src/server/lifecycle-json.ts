import {
  formatCursor,
  type LogPosition,
  type PodCacheEntry,
  type PodLifecycleEvent,
} from "../lifecycle/index.ts";
import type { ContainerStatus, ListedContainer, Pod, SandboxStatus } from "../runtime/index.ts";

const NANOSECONDS_PER_MILLISECOND = 1_000_000n;

/** An event in the form of the JSON API. */
export function eventItem(
  { sequence, at, type, pod, container, exitCode, reason }: PodLifecycleEvent,
  position: LogPosition,
) {
  return {
    kind: "event" as const,
    cursor: formatCursor(position),
    event: { sequence, type, at, pod, container, exitCode, reason },
  };
}

/** The current pods, from which a consumer with an expired cursor continues. */
export function snapshotItem(pods: readonly Pod[], position: LogPosition, missed: number | undefined) {
  return {
    kind: "snapshot" as const,
    cursor: formatCursor(position),
    missed,
    pods: pods.map(({ uid, namespace, name, sandboxes, containers }) => ({
      ...{ uid, namespace, name },
      containers: [...sandboxes, ...containers].map(listed),
    })),
  };
}

/** @param observedAt wall-clock time, milliseconds */
export function podStatus({ status, error }: PodCacheEntry, observedAt: number) {
  const { uid, namespace, name, ips, sandboxes, containers } = status;
  return {
    ...{ uid, namespace, name, ips },
    sandboxes: sandboxes.map((sandbox) => containerStatus(sandbox)),
    containers: containers.map((container) => containerStatus(container, container)),
    observedAt: Math.round(observedAt),
    error: error?.message,
  };
}

function listed({ id, name, kind, state, attempt }: ListedContainer) {
  return { id, name, kind, state, attempt };
}

function containerStatus(container: ContainerStatus | SandboxStatus, more?: ContainerStatus) {
  return {
    ...listed(container),
    createdAt: milliseconds(container.createdAt),
    startedAt: milliseconds(more?.startedAt),
    finishedAt: milliseconds(more?.finishedAt),
    exitCode: more?.state === "exited" ? more.exitCode : undefined,
    reason: more?.reason ?? "",
    message: more?.message ?? "",
    image: more?.image ?? "",
    imageRef: more?.imageRef ?? "",
  };
}

// The runtime reports 0 for a time that is not set.
function milliseconds(nanoseconds = 0n): number | undefined {
  return nanoseconds === 0n ? undefined : Number(nanoseconds / NANOSECONDS_PER_MILLISECOND);
}
