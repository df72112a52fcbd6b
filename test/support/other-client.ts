import { createKubeClient, createKubeMetrics, loadClusterAccess } from "@nodekeeper/core/kube";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import type { TestCluster } from "./cluster.ts";

/** A client of another field manager. */
export async function clientAs({ kubeconfig }: TestCluster, fieldManager: string) {
  const access = await loadClusterAccess({ kubeconfig, environment: {} });
  const metrics = createKubeMetrics(new Registry());
  const common = { clock: systemClock, log: silentLogger, metrics };
  return createKubeClient({ ...common, access, fieldManager, version: "test", qps: 100, burst: 100 });
}
