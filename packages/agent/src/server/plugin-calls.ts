import type { Registry } from "@nodekeeper/core/lib";

/** Messages of a reporter plugin, or calls to an eviction plugin, since registration. */
export interface PluginCalls {
  count: number;
  failures: number;
  /** Average duration of a call, milliseconds. Undefined for messages. */
  meanMs?: number;
}

// The metrics that count the calls, by plugin type. A plugin's series are removed when it deregisters.
const sources = {
  ReporterPlugin: {
    count: "nodekeeper_reporting_messages_total",
    failures: "nodekeeper_reporting_call_failures_total",
  },
  EvictionPlugin: {
    count: "nodekeeper_eviction_plugin_call_duration_seconds",
    failures: "nodekeeper_eviction_plugin_call_failures_total",
  },
} as const;

interface Sample {
  /** For a histogram: its name with "_count", "_sum" or "_bucket". */
  metricName?: string;
  value: number;
  labels: Partial<Record<string, string | number>>;
}

/** Returns the calls of all plugins by `keyOf`, read from existing metrics. */
export async function pluginCalls(registry: Registry): Promise<ReadonlyMap<string, PluginCalls>> {
  const found = new Map<string, PluginCalls>();
  for (const [type, { count, failures }] of Object.entries(sources)) {
    const seconds = new Map<string, number>();
    const add = ({ labels, value }: Sample, key: "count" | "failures") => {
      const of = keyOf(type, String(labels.plugin ?? ""));
      const calls = found.get(of) ?? { count: 0, failures: 0 };
      calls[key] += value;
      found.set(of, calls);
    };
    for (const sample of await samplesOf(registry, count)) {
      if (sample.metricName?.endsWith("_bucket")) continue;
      const of = keyOf(type, String(sample.labels.plugin ?? ""));
      if (sample.metricName?.endsWith("_sum")) seconds.set(of, (seconds.get(of) ?? 0) + sample.value);
      else add(sample, "count");
    }
    for (const sample of await samplesOf(registry, failures)) add(sample, "failures");
    for (const [of, sum] of seconds) {
      const calls = found.get(of);
      if (calls && calls.count > 0) calls.meanMs = (sum * 1000) / calls.count;
    }
  }
  return found;
}

export function keyOf(type: string, name: string): string {
  return `${type} ${name}`;
}

async function samplesOf(registry: Registry, name: string): Promise<readonly Sample[]> {
  const metric = registry.getSingleMetric(name);
  return metric ? ((await metric.get()).values as Sample[]) : [];
}
