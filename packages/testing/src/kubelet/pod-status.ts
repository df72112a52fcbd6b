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

/** A pod's status as its containers are now. What it has of the past, such as the start, is kept. */
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

/** The part of a status that the API server does not have yet; undefined where it has all. */
export function changedStatus(pod: JsonPod, wanted: JsonPodStatus): JsonPodStatus | undefined {
  const had = (pod.status ?? {}) as Record<string, unknown>;
  const changed = Object.entries(wanted).filter(([name, value]) => !isDeepStrictEqual(had[name], value));
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as JsonPodStatus);
}

/** Whether the pod's restart policy has a container that ended started again. */
export function restarts({ spec }: JsonPod, { exitCode }: SimulatedContainer): boolean {
  const policy = spec?.restartPolicy ?? "Always";
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** Wall time of the runtime in milliseconds. */
export function millisecondsOf(time: bigint): number {
  return Number(time / NANOSECONDS);
}

// A pod that is being deleted has ended as well, for good: nothing is started in it again.
function phaseOf(pod: JsonPod, containers: readonly SimulatedContainer[]): string {
  if (containers.length === 0) return pod.status?.phase ?? "Pending";
  const isTerminating = pod.metadata.deletionTimestamp !== undefined;
  const isRunning = containers.some(
    (container) => !hasEnded(container) || (!isTerminating && restarts(pod, container)),
  );
  if (isRunning) return "Running";
  return containers.every(({ exitCode }) => exitCode === 0) ? "Succeeded" : "Failed";
}

// Conditions of others, such as the eviction API's DisruptionTarget, stay, and so does the order.
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

// As Kubernetes writes times: whole seconds.
function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
