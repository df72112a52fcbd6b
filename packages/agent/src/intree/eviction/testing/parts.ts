import { join } from "node:path";
import type { QosLevel } from "@nodekeeper/api/decide";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { type ObservedPod, observeJson } from "../../../eviction/index.ts";
import {
  type CpuUse,
  type FilesystemState,
  Host,
  HostReadings,
  type MemoryState,
  type NodeMemory,
  type PodActivity,
  PodReadings,
  type PodsState,
  type PodUse,
  type Pressure,
  type Reading,
} from "../../../host/index.ts";
import { type PodDisk, PodDisks, PodMemories, type PodMemory } from "../../../pod-usage/index.ts";
import type { EvictionPluginParts } from "../in-tree-plugin.ts";
import { createInTreeEvictionMetrics } from "../missing-readings.ts";

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;
export const never = new AbortController().signal;

export interface TestPod {
  qosLevel?: QosLevel;
  priority?: number;
  phase?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** Requests of each container. */
  requests?: readonly Record<string, string>[];
  spec?: Record<string, unknown>;
}

/** Returns an observed pod with its name as UID. */
export function testPod(name: string, pod: TestPod = {}): ObservedPod {
  const { qosLevel = "shared_cores", priority = 0, phase = "Running", requests = [{}] } = pod;
  return observeJson({
    metadata: {
      uid: name,
      name,
      namespace: "default",
      labels: pod.labels ?? {},
      annotations: { "katalyst.kubewharf.io/qos_level": qosLevel, ...pod.annotations },
    },
    spec: {
      nodeName: "node-1",
      priority,
      containers: requests.map((each, at) => ({ name: `c${at}`, resources: { requests: each } })),
      ...pod.spec,
    },
    status: { phase },
  });
}

export function stall(avg10: number): Pressure {
  return { some: { avg10, avg60: 0, avg300: 0 }, full: undefined };
}

/** Returns the memory of a pod, by default all of it anonymous. */
export function uses(usageBytes: number, more: Partial<PodMemory> = {}): PodMemory {
  return { usageBytes, rssBytes: usageBytes, workingSetBytes: usageBytes, nodeBytes: undefined, ...more };
}

/** A machine with readings that a test sets; others are missing. */
export class TestMachine {
  readonly clock = new FakeClock(1_000_000);
  readonly registry = new Registry();
  readonly #metrics = createInTreeEvictionMetrics(this.registry);
  memory: MemoryState | undefined;
  nodes: NodeMemory[] | undefined;
  pods: Record<string, Partial<PodUse> & { memory: PodMemory }> | undefined;
  burstable: Pressure | undefined;
  cgroups: Record<string, Pressure> = {};
  disks: Record<string, PodDisk> | undefined;
  activity: Record<string, PodActivity> | undefined;
  filesystem: Omit<FilesystemState, "path"> | undefined;
  cpu: CpuUse | undefined;
  loadAverage: number | undefined;
  /** Age of the readings, milliseconds. */
  ageMs = 0;
  podReads = 0;

  readings = {
    memory: async () => this.#reading(this.memory),
    nodeMemory: async () => this.#reading(this.nodes),
    pods: async () => {
      this.podReads++;
      return this.#reading(this.#podsState());
    },
    podActivity: async () => this.#reading(this.activity && new Map(Object.entries(this.activity))),
    filesystem: async (path: string) => this.#reading(this.filesystem && { path, ...this.filesystem }),
    cpu: async () => this.#reading(this.cpu),
    loadAverage: async () => this.#reading(this.loadAverage),
    cgroupPressure: async (cgroup: string) => this.#reading(this.cgroups[cgroup]),
  } as unknown as HostReadings;

  parts(more: Partial<EvictionPluginParts> = {}): EvictionPluginParts {
    const { readings, clock } = this;
    return {
      readings,
      memories: new PodMemories({ readings, runtimeStats: undefined, clock }),
      disks: { all: async () => this.#reading(this.disks && new Map(Object.entries(this.disks))) },
      rootfsPath: async () => "/rootfs",
      allocatable: () => ({ state: "missing", at: 0, message: "not there" }),
      roundPeriodMs: () => 5_000,
      clock,
      log: silentLogger,
      metrics: this.#metrics,
      ...more,
    };
  }

  #podsState(): PodsState | undefined {
    if (!this.pods) return undefined;
    const pods = Object.entries(this.pods).map(([uid, use]): [string, PodUse] => [
      uid,
      { memoryPressure: undefined, ...use },
    ]);
    return {
      pods: new Map(pods),
      groupPressure: new Map(this.burstable ? [["burstable", this.burstable]] : []),
    };
  }

  #reading<T>(value: T | undefined): Reading<T> {
    const at = this.clock.monotonic() - this.ageMs;
    if (value === undefined) return { state: "missing", at, message: "not there" };
    return { state: "read", at, value, problems: [] };
  }
}

/** Returns the question for top pods of a hard threshold. */
export function topQuestion(plugin: string, scope: string, topN = 1) {
  return { plugin, scope, topN, candidateUids: null };
}

/** Real readings of a made-up machine in test/fixtures/host, without a container runtime. */
export function fixtureReadings(machine: string) {
  const root = join(import.meta.dirname, "../../../../../../test/fixtures/host", machine);
  const clock = new FakeClock();
  const readings = new HostReadings({
    host: new Host({ root, clock }),
    pods: new PodReadings({ root, clock }),
    clock,
    maxAgeMs: () => 1_000,
  });
  return {
    clock,
    readings,
    memories: new PodMemories({ readings, runtimeStats: undefined, clock }),
    disks: new PodDisks({ runtimeStats: undefined, clock }),
  };
}
