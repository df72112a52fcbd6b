import { createKubeClient, createKubeMetrics, loadClusterAccess } from "@nodekeeper/core/kube";
import { type Logger, Registry, type Runnable, systemClock } from "@nodekeeper/core/lib";
import { DevKubelet, type SimulatedRuntime, type Workload, WorkloadKeeper } from "@nodekeeper/testing";
import { packageVersion } from "./version.ts";

/** Pods with this label are never evicted by the agent that `nodekeeper dev` runs. */
export const KEEP_LABEL = "example.com/keep";

// The label by which examples/eviction selects pods.
const sampleLabels = { "example.com/sample": "true" };

/** Sample pods, one of each kind that eviction treats differently. The sample plugin selects any of them. */
const workloads: readonly Workload[] = [
  {
    ...sampleWorkload("cluster-dns", {}),
    namespace: "kube-system",
    spec: {
      priority: 2_000_000_000,
      priorityClassName: "system-cluster-critical",
      containers: [{ name: "dns", image: "images.example/dns:1.0" }],
    },
  },
  { ...sampleWorkload("log-collector", {}), namespace: "kube-system", owner: "DaemonSet" },
  { ...sampleWorkload("ledger", {}), labels: { ...sampleLabels, [KEEP_LABEL]: "true" } },
  sampleWorkload("crawler", {}),
  sampleWorkload("thumbnailer", { requests: { cpu: "100m", memory: "64Mi" } }),
  sampleWorkload("search", {
    requests: { cpu: "250m", memory: "256Mi" },
    limits: { cpu: "250m", memory: "256Mi" },
  }),
];

export interface DevPodsOptions {
  runtime: SimulatedRuntime;
  kubeconfig: string;
  nodeName: string;
  log: Logger;
}

/** Runnables that keep the sample pods in the embedded API server and run them in the simulated runtime. */
export async function devPods({ runtime, kubeconfig, nodeName, log }: DevPodsOptions): Promise<Runnable[]> {
  const kubeMetrics = createKubeMetrics(new Registry());
  const client = createKubeClient({
    access: await loadClusterAccess({ kubeconfig, environment: {} }),
    clock: systemClock,
    log,
    metrics: kubeMetrics,
    version: packageVersion(),
    fieldManager: "dev-kubelet",
  });
  const common = { client, nodeName, clock: systemClock, log, kubeMetrics };
  return [
    closedAfter(new DevKubelet({ ...common, runtime, stopAfterMs: 1_500 }), () => client.close()),
    new WorkloadKeeper({ ...common, workloads }),
  ];
}

function sampleWorkload(name: string, resources: object): Workload {
  return {
    name,
    namespace: "default",
    owner: "ReplicaSet",
    replicas: 1,
    labels: sampleLabels,
    spec: {
      terminationGracePeriodSeconds: 10,
      containers: [{ name: "main", image: `images.example/${name}:1.0`, resources }],
    },
  };
}

function closedAfter(part: Runnable, close: () => void): Runnable {
  return {
    name: part.name,
    async run(signal) {
      try {
        await part.run(signal);
      } finally {
        close();
      }
    },
  };
}
