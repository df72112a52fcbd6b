import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";

export interface KubeletReporterMetrics {
  readings: Counter<"result">;
  unknownPods: Gauge;
}

/** Create one for each registry. */
export function createKubeletReporterMetrics(registry: Registry): KubeletReporterMetrics {
  return {
    readings: new Counter({
      name: "nodekeeper_intree_kubelet_readings_total",
      help: "Number of readings of the kubelet's PodResources API, by result (ok, incomplete while it does not list all of its pods, or an error code).",
      labelNames: ["result"],
      registers: [registry],
    }),
    unknownPods: new Gauge({
      name: "nodekeeper_intree_kubelet_unknown_pods",
      help: "Number of pods with allocations in the kubelet's PodResources API that are not running in the container runtime.",
      registers: [registry],
    }),
  };
}
