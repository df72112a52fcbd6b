import { join } from "node:path";
import { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { silentLogger, stopped } from "@nodekeeper/core/lib";
import {
  type EventFaults,
  SimulatedCri,
  type SimulatedCriOptions,
  SimulatedRuntime,
} from "@nodekeeper/testing";
import { simulatedNode } from "../../../packages/testing/src/cluster/simulated-node.ts";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import { type ApiServer, NODE } from "./api-server.ts";
import { ContainerStops, type StopChance } from "./container-stops.ts";
import type { History, Stage } from "./history.ts";
import { KEEP_LABEL } from "./settings.ts";

const stages: Readonly<Partial<Record<ContainerEventType, Stage>>> = {
  [ContainerEventType.CONTAINER_CREATED_EVENT]: "created",
  [ContainerEventType.CONTAINER_STARTED_EVENT]: "running",
  [ContainerEventType.CONTAINER_STOPPED_EVENT]: "exited",
  [ContainerEventType.CONTAINER_DELETED_EVENT]: "removed",
};

type RuntimeName = Pick<SimulatedCriOptions, "name" | "version">;

// What containerd states of a container whose end it has not seen.
const UNKNOWN_EXIT = 255;

// The agent knows that the last two send each event to all subscribers, and lists less often once one arrived in time.
const runtimes = [
  { name: "simulated", version: "1.0.0" },
  { name: "containerd", version: "1.7.27" },
  { name: "containerd", version: "v2.1.4" },
  { name: "cri-o", version: "1.33.2" },
] as const;

/** Draws the name and version that the runtime states. */
export function drawRuntime(random: () => number): RuntimeName {
  return runtimes[Math.floor(random() * runtimes.length)]!;
}

/** The container runtime of the node. Its containers outlive its process. */
export class ContainerRuntime {
  readonly runtime: SimulatedRuntime;
  readonly process: Process;
  /** Undefined if the agent stops no containers in this world. */
  readonly stops: ContainerStops | undefined;
  readonly #cri: SimulatedCri;
  #isRestarting = false;

  /** @param chance of stops; undefined if the agent stops no containers in this world */
  constructor(machine: Machine, history: History, name: RuntimeName, chance: StopChance | undefined) {
    this.process = machine.spawn("containerd");
    const { clock } = this.process;
    this.runtime = this.process.run(() => new SimulatedRuntime({ clock }));
    this.runtime.subscribe(({ id, type, pod }) => {
      const stage = stages[type]!;
      history.stages.set(id, stage);
      if (stage === "exited") history.exits.set(id, machine.scheduler.now);
      history.note("containerd", `${id.slice(0, 12)} of ${pod.name} is ${stage}`);
    });
    const socket = join(machine.runDirectory, "cri.sock");
    const stops = chance && new ContainerStops(this.process, history, this.runtime, chance);
    this.stops = stops;
    const stopContainer = stops && { stopContainer: stops.stop.bind(stops) };
    const options = {
      runtime: this.runtime,
      socket,
      clock,
      random: machine.random,
      ...name,
      ...stopContainer,
    };
    this.#cri = this.process.run(() => new SimulatedCri(options));
  }

  start(): Promise<void> {
    return this.process.run(() => this.#cri.start());
  }

  stop(): Promise<void> {
    return this.process.run(() => this.#cri.stop());
  }

  /** Ends all connections, and starts again after some time with the same containers. */
  async restart(downMs: number): Promise<void> {
    if (this.#isRestarting) return;
    this.#isRestarting = true;
    const { clock } = this.process;
    await this.process.run(() => this.#cri.restart(() => clock.sleep(downMs)));
    this.#isRestarting = false;
  }

  /** Its containers exit, as in a machine that goes down. It starts again after some time. */
  async reboot(downMs: number): Promise<void> {
    const { runtime, process } = this;
    process.thaw();
    const restarted = this.restart(downMs);
    process.run(() => {
      for (const { id } of runtime.containers.values()) runtime.exit(id, UNKNOWN_EXIT, "Unknown");
      for (const id of runtime.sandboxes.keys()) runtime.stopSandbox(id);
    });
    await restarted;
  }

  /** What happens to events of containers on their way from now on. */
  set eventFaults(faults: EventFaults) {
    this.#cri.eventFaults = faults;
  }
}

/** The kubelet of the node and the controllers of its workloads. */
export class Kubelet {
  readonly #machine: Machine;
  readonly #api: ApiServer;
  readonly #runtime: ContainerRuntime;
  readonly #mostReplicas: number;
  readonly #reclaimed: string | undefined;
  readonly #stopped: StoppedPods | undefined;
  #stop: AbortController | undefined;

  /**
   * @param mostReplicas most pods of a workload
   * @param reclaimed name of the workload whose pods are reclaimed ones, if one is
   * @param stopped undefined if the agent stops no containers in this world
   */
  constructor(
    machine: Machine,
    api: ApiServer,
    runtime: ContainerRuntime,
    {
      mostReplicas,
      reclaimed,
      stopped,
    }: { mostReplicas: number; reclaimed: string | undefined; stopped: StoppedPods | undefined },
  ) {
    this.#mostReplicas = mostReplicas;
    this.#reclaimed = reclaimed;
    this.#stopped = stopped;
    this.#machine = machine;
    this.#api = api;
    this.#runtime = runtime;
  }

  /** Runs in the process of the runtime: what a kubelet that is restarted would have to find there, it knows. */
  async start(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    const parts = await simulatedNode({
      runtime: this.#runtime.runtime,
      kubeconfig: this.#api.kubeconfig,
      nodeName: NODE,
      workloads: workloads.map((each) => ({
        ...each,
        replicas: Math.min(each.replicas, this.#mostReplicas),
        ...(each.name === this.#reclaimed ? { annotations: reclaimedAnnotations } : {}),
        ...(this.#stopped ? { spec: { ...each.spec, ...stoppedSpec(each.name, this.#stopped) } } : {}),
      })),
      log: silentLogger,
    });
    for (const part of parts) void part.run(stop.signal).catch(() => {});
  }

  stop(): void {
    this.#machine.init.run(() => this.#stop?.abort(stopped("the kubelet stops")));
    this.#stop = undefined;
  }
}

const reclaimedAnnotations = { "katalyst.kubewharf.io/qos_level": "reclaimed_cores" };

const containers = [{ name: "app", image: "app" }];

/** Sets of pods that are kept running: what an eviction removes comes back under another name. */
const workloads = [
  {
    name: "web",
    namespace: "default",
    owner: "ReplicaSet" as const,
    replicas: 4,
    spec: { containers, terminationGracePeriodSeconds: 2 },
  },
  {
    name: "db",
    namespace: "default",
    labels: { [KEEP_LABEL]: "yes" },
    owner: "ReplicaSet" as const,
    replicas: 2,
    spec: { containers, terminationGracePeriodSeconds: 20 },
  },
  {
    name: "log",
    namespace: "default",
    owner: "DaemonSet" as const,
    replicas: 1,
    spec: { containers, terminationGracePeriodSeconds: 1 },
  },
  {
    name: "train",
    namespace: "default",
    owner: "ReplicaSet" as const,
    replicas: 3,
    spec: {
      containers,
      terminationGracePeriodSeconds: 5,
      resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "one-gpu" }],
    },
  },
  {
    name: "tune",
    namespace: "default",
    owner: "ReplicaSet" as const,
    replicas: 1,
    spec: {
      containers,
      terminationGracePeriodSeconds: 1,
      resourceClaims: [{ name: "gpus", resourceClaimTemplateName: "two-gpus" }],
    },
  },
];

/** What is different about the pods of workloads in worlds in which the agent stops containers. */
export interface StoppedPods {
  /** Restart policies by workload. */
  restartPolicies: Readonly<Record<string, "Always" | "OnFailure" | "Never">>;
  /** Workloads with a second container. */
  helped: readonly string[];
}

const helper = { name: "helper", image: "helper" };
const requests = { resources: { requests: { memory: "32Mi" } } };

/** Pods of the workload "db" are Burstable, so that rules by QoS class select some of the pods. */
function stoppedSpec(workload: string, { restartPolicies, helped }: StoppedPods) {
  const apps = containers.map((each) => (workload === "db" ? { ...each, ...requests } : each));
  const restartPolicy = restartPolicies[workload];
  return {
    containers: helped.includes(workload) ? [...apps, helper] : apps,
    ...(restartPolicy ? { restartPolicy } : {}),
  };
}

/** Pods that nobody may evict, and pods that come back under no name. */
export function seedPods(api: ApiServer): void {
  putPod(api, "critical", {}, { priorityClassName: "system-node-critical", priority: 2_000_001_000 });
  putPod(api, "mirror", { annotations: { "kubernetes.io/config.mirror": "abc" } });
  putPod(api, "static", { annotations: { "kubernetes.io/config.source": "file" } });
}

/** Creates a pod of the namespace kube-system. */
export function putPod({ store }: ApiServer, name: string, metadata: object, spec: object = {}): void {
  store.put({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "kube-system", ...metadata },
    spec: { nodeName: NODE, terminationGracePeriodSeconds: 2, containers, ...spec },
  });
}

/** Workloads that may be the reclaimed one. Pods of the second are never candidates. */
export const reclaimable = ["web", "log"] as const;

/** Beginning of the names of the pods that have the label `KEEP_LABEL`. */
export const keptName = "db-";

/** Beginnings of the names of pods that are never evicted. */
export const protectedNames = ["critical", "mirror", "static", "log-"];
