import { NodekeeperError } from "@nodekeeper/core/lib";
import { PodResources } from "./pod-resources.ts";
import type { KubeletReporterSettings } from "./settings.ts";

/**
 * Returns the devices of ResourceClaims used by the kubelet's running pods, as `<driver>/<pool>/<device>`. Throws
 * `unsupported` if the kubelet does not name them (before Kubernetes 1.31), `unavailable` if it can't be reached.
 */
export async function devicesInUse(
  {
    podResourcesSocket,
    maxAnswerBytes,
  }: Pick<KubeletReporterSettings, "podResourcesSocket" | "maxAnswerBytes">,
  signal: AbortSignal,
): Promise<Set<string>> {
  const podResources = new PodResources(podResourcesSocket, maxAnswerBytes);
  try {
    const { pods } = await podResources.read(signal);
    const claimed = pods.flatMap((pod) => pod.claimed);
    if (claimed.some(({ driver }) => driver === ""))
      throw new NodekeeperError("unsupported", "the kubelet does not name the devices of claims");
    return new Set(claimed.map(({ driver, pool, device }) => `${driver}/${pool}/${device}`));
  } finally {
    podResources.close();
  }
}
