import { createKubeClient, createKubeMetrics, loadClusterAccess } from "@nodekeeper/core/kube";
import { type Logger, Registry, type Runnable, systemClock } from "@nodekeeper/core/lib";
import { DevKubelet, type SimulatedRuntime, type Workload, WorkloadKeeper } from "@nodekeeper/testing";
import { packageVersion } from "./version.ts";

/** Pods with this label are left alone by the agent that `nodekeeper dev` runs. */
export const KEEP_LABEL = "example.com/keep";

// What examples/eviction watches.
const sampleLabels = { "example.com/sample": "true" };

/** Pods of every kind that eviction tells apart; the sample plugin would have any of them go. */
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

/** What keeps sample pods in the embedded API server, and runs them in the simulated runtime. */
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
