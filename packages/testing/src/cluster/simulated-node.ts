import { createKubeClient, createKubeMetrics, loadClusterAccess } from "@nodekeeper/core/kube";
import { type Logger, Registry, type Runnable, systemClock } from "@nodekeeper/core/lib";
import { DevKubelet } from "../kubelet/dev-kubelet.ts";
import { type Workload, WorkloadKeeper } from "../kubelet/workload-keeper.ts";
import type { SimulatedRuntime } from "../runtime/simulated-runtime.ts";

export interface SimulatedNodeOptions {
  /** Runtime in which the pods run. */
  runtime: SimulatedRuntime;
  /** Path of the kubeconfig of the development API server. */
  kubeconfig: string;
  nodeName: string;
  /** Pods that are recreated when they terminate. */
  workloads: readonly Workload[];
  /** Address of the node, used as `status.hostIP` of its pods. Default 127.0.0.1. */
  hostIP?: string;
  log: Logger;
}

/**
 * Returns runnables that run the node's pods in the simulated runtime, as its kubelet would, and keep the workloads
 * running.
 */
export async function simulatedNode(options: SimulatedNodeOptions): Promise<Runnable[]> {
  const { runtime, kubeconfig, nodeName, workloads, hostIP, log } = options;
  const kubeMetrics = createKubeMetrics(new Registry());
  const client = createKubeClient({
    access: await loadClusterAccess({ kubeconfig, environment: {} }),
    clock: systemClock,
    log,
    metrics: kubeMetrics,
    version: "dev",
    fieldManager: "dev-kubelet",
  });
  const common = { client, nodeName, clock: systemClock, log, kubeMetrics };
  return [
    closedAfter(
      new DevKubelet({ ...common, runtime, stopAfterMs: 1_500, ...(hostIP ? { hostIP } : {}) }),
      () => client.close(),
    ),
    new WorkloadKeeper({ ...common, workloads }),
  ];
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
