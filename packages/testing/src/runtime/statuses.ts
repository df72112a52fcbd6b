import {
  ContainerState,
  type ContainerStats,
  type ContainerStatus,
  type DeepPartial,
  PodSandboxState,
  type PodSandboxStats,
  type PodSandboxStatus,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { podLabels } from "./list-bytes.ts";
import type { SimulatedContainer, SimulatedSandbox } from "./model.ts";

const NANOSECONDS_PER_MILLISECOND = 1_000_000n;
const NANOSECONDS_PER_SECOND = 1_000_000_000n;
// A tenth of a CPU.
const CPU_SHARE = 10n;

export function sandboxStatus(sandbox: SimulatedSandbox): DeepPartial<PodSandboxStatus> {
  const { id, pod, attempt, createdAt, isReady, ips } = sandbox;
  const [ip, ...more] = isReady ? ips : [];
  return {
    id,
    metadata: { ...pod, attempt },
    state: isReady ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY,
    createdAt,
    network: { ip: ip ?? "", additionalIps: more.map((each) => ({ ip: each })) },
  };
}

export function containerStatus(container: SimulatedContainer): DeepPartial<ContainerStatus> {
  const { id, pod, name, attempt, image, state, createdAt, startedAt, finishedAt, exitCode, reason } =
    container;
  return {
    id,
    metadata: { name, attempt },
    state,
    createdAt,
    startedAt,
    finishedAt,
    exitCode,
    image: { image, userSpecifiedImage: image },
    imageRef: `${image.split(":")[0]}@sha256:${id}`,
    reason,
    labels: { ...podLabels(pod), "io.kubernetes.container.name": name },
  };
}

/** @param now wall clock milliseconds */
export function containerStats(container: SimulatedContainer, now: number): DeepPartial<ContainerStats> {
  const { id, pod, name, attempt, memoryBytes } = container;
  const timestamp = nanoseconds(now);
  const bytes = BigInt(memoryBytes);
  return {
    attributes: { id, metadata: { name, attempt }, labels: podLabels(pod) },
    cpu: cpuUsage([container], timestamp),
    memory: {
      timestamp,
      workingSetBytes: { value: bytes },
      usageBytes: { value: (bytes * 5n) / 4n },
      rssBytes: { value: (bytes * 3n) / 4n },
    },
    writableLayer: { timestamp, usedBytes: { value: 4096n }, inodesUsed: { value: 7n } },
  };
}

/** @param now wall clock milliseconds */
export function sandboxStats(
  sandbox: SimulatedSandbox,
  containers: readonly SimulatedContainer[],
  now: number,
): DeepPartial<PodSandboxStats> {
  const running = containers.filter(isRunning);
  const timestamp = nanoseconds(now);
  const bytes = BigInt(running.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0));
  return {
    attributes: { id: sandbox.id, metadata: { ...sandbox.pod, attempt: sandbox.attempt } },
    linux: {
      cpu: cpuUsage(running, timestamp),
      memory: { timestamp, workingSetBytes: { value: bytes }, rssBytes: { value: (bytes * 3n) / 4n } },
      process: { timestamp, processCount: { value: BigInt(running.length + 1) } },
      containers: running.map((container) => containerStats(container, now)),
    },
  };
}

function cpuUsage(containers: readonly SimulatedContainer[], timestamp: bigint) {
  const used = containers.reduce((sum, container) => sum + ranFor(container, timestamp) / CPU_SHARE, 0n);
  const cores = BigInt(containers.filter(isRunning).length);
  return {
    timestamp,
    usageCoreNanoSeconds: { value: used },
    usageNanoCores: { value: (cores * NANOSECONDS_PER_SECOND) / CPU_SHARE },
  };
}

function ranFor({ state, startedAt, finishedAt }: SimulatedContainer, timestamp: bigint): bigint {
  if (startedAt === 0n) return 0n;
  const until = state === ContainerState.CONTAINER_EXITED ? finishedAt : timestamp;
  // Times within one millisecond are counted up from it, so a start may be ahead of the clock.
  return until > startedAt ? until - startedAt : 0n;
}

function isRunning({ state }: SimulatedContainer): boolean {
  return state === ContainerState.CONTAINER_RUNNING;
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds)) * NANOSECONDS_PER_MILLISECOND;
}
