import {
  createKubeClient,
  createKubeMetrics,
  type KubeApiClient,
  loadClusterAccess,
} from "@nodekeeper/core/kube";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import type { ApiServer } from "./api-server.ts";

/** Returns a client of another program than the agent, whose requests are those of the process that makes them. */
export async function otherClient(
  { kubeconfig }: Pick<ApiServer, "kubeconfig">,
  fieldManager: string,
): Promise<KubeApiClient> {
  return createKubeClient({
    access: await loadClusterAccess({ kubeconfig, environment: {} }),
    clock: systemClock,
    log: silentLogger,
    metrics: createKubeMetrics(new Registry()),
    version: "dev",
    fieldManager,
  });
}
