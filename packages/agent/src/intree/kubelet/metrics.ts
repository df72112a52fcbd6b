import { metricTable, type Registry } from "@nodekeeper/core/lib";

/** Metrics of the kubelet reporter. Create one per registry. */
export function createKubeletReporterMetrics(registry: Registry) {
  const { counter, gauge } = metricTable(registry, "nodekeeper_intree_kubelet_");
  return {
    readings: counter(
      "readings_total",
      "Number of readings of the kubelet's PodResources API, by result (ok, incomplete while it does not list all of its pods, or an error code).",
      ["result"],
    ),
    unknownPods: gauge(
      "unknown_pods",
      "Number of pods with allocations in the kubelet's PodResources API that are not running in the container runtime.",
    ),
  };
}

export type KubeletReporterMetrics = ReturnType<typeof createKubeletReporterMetrics>;
