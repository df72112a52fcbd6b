import { isDeepStrictEqual } from "node:util";
import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { SimulatedContainer, SimulatedSandbox } from "../runtime/model.ts";
import type {
  JsonCondition,
  JsonContainerState,
  JsonContainerStatus,
  JsonPod,
  JsonPodStatus,
} from "./pods.ts";

const NANOSECONDS = 1_000_000n;

/** Returns a pod's status for the current state of its containers. Keeps the start time and transition times. */
export function podStatus(
  pod: JsonPod,
  sandbox: SimulatedSandbox | undefined,
  containers: readonly SimulatedContainer[],
  hostIP: string,
  now: number,
): JsonPodStatus {
  const statuses = containers.map(containerStatus);
  const phase = phaseOf(pod, containers);
  const isReady = phase === "Running" && statuses.every(({ ready }) => ready) && statuses.length > 0;
  const ips = sandbox?.ips ?? [];
  return {
    phase,
    startTime: pod.status?.startTime ?? timestamp(now),
    ...(ips[0] ? { hostIP, podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) } : {}),
    conditions: conditions(pod, { Initialized: true, ContainersReady: isReady, Ready: isReady }, now),
    containerStatuses: statuses,
  };
}

/** Returns the fields of a status that differ at the API server. Undefined if none do. */
export function changedStatus(pod: JsonPod, wanted: JsonPodStatus): JsonPodStatus | undefined {
  const had = (pod.status ?? {}) as Record<string, unknown>;
  const changed = Object.entries(wanted).filter(([name, value]) => !isDeepStrictEqual(had[name], value));
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as JsonPodStatus);
}

/** Returns whether the pod's restart policy restarts an exited container. */
export function restarts({ spec }: JsonPod, { exitCode }: SimulatedContainer): boolean {
  const policy = spec?.restartPolicy ?? "Always";
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** Converts a timestamp of the runtime, in nanoseconds, to milliseconds. */
export function millisecondsOf(time: bigint): number {
  return Number(time / NANOSECONDS);
}

// A terminating pod whose containers exited has terminated: its containers are not restarted.
function phaseOf(pod: JsonPod, containers: readonly SimulatedContainer[]): string {
  if (containers.length === 0) return pod.status?.phase ?? "Pending";
  const isTerminating = pod.metadata.deletionTimestamp !== undefined;
  const isRunning = containers.some(
    (container) => !hasEnded(container) || (!isTerminating && restarts(pod, container)),
  );
  if (isRunning) return "Running";
  return containers.every(({ exitCode }) => exitCode === 0) ? "Succeeded" : "Failed";
}

// Keeps other conditions, such as the eviction API's DisruptionTarget, and their order.
function conditions(pod: JsonPod, wanted: Record<string, boolean>, now: number): JsonCondition[] {
  const merged = new Map(pod.status?.conditions?.map((condition) => [condition.type, condition]));
  for (const [type, holds] of Object.entries(wanted)) {
    const status = holds ? "True" : "False";
    if (merged.get(type)?.status === status) continue;
    merged.set(type, { type, status, lastTransitionTime: timestamp(now) });
  }
  return [...merged.values()];
}

function containerStatus(container: SimulatedContainer): JsonContainerStatus {
  const { id, name, image, attempt, state } = container;
  const isRunning = state === ContainerState.CONTAINER_RUNNING;
  return {
    name,
    image,
    imageID: image,
    containerID: `simulated://${id}`,
    ready: isRunning,
    started: isRunning,
    restartCount: attempt,
    state: stateOf(container),
  };
}

function stateOf(container: SimulatedContainer): JsonContainerState {
  const startedAt = timestamp(millisecondsOf(container.startedAt));
  if (container.state === ContainerState.CONTAINER_RUNNING) return { running: { startedAt } };
  if (!hasEnded(container)) return { waiting: { reason: "ContainerCreating" } };
  const { exitCode, reason, finishedAt, id } = container;
  return {
    terminated: {
      exitCode,
      reason,
      startedAt,
      finishedAt: timestamp(millisecondsOf(finishedAt)),
      containerID: `simulated://${id}`,
    },
  };
}

function hasEnded({ state }: SimulatedContainer): boolean {
  return state === ContainerState.CONTAINER_EXITED;
}

// Kubernetes serializes times in whole seconds.
function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
