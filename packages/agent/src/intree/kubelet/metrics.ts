import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";

export interface KubeletReporterMetrics {
  readings: Counter<"result">;
  unknownPods: Gauge;
}

/** One of them for each registry. */
export function createKubeletReporterMetrics(registry: Registry): KubeletReporterMetrics {
  return {
    readings: new Counter({
      name: "nodekeeper_intree_kubelet_readings_total",
      help: "Readings of the kubelet's PodResources, by result: ok or the code of an error",
      labelNames: ["result"],
      registers: [registry],
    }),
    unknownPods: new Gauge({
      name: "nodekeeper_intree_kubelet_unknown_pods",
      help: "Pods of which the kubelet says that they hold something and that the runtime does not run",
      registers: [registry],
    }),
  };
}
