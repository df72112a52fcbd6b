import type { ObservedPod } from "../eviction/index.ts";
import { podRequests, unitsOf } from "../pod-usage/index.ts";
import { MOST_ENTRIES, type PodUsage } from "./fields.ts";
import type { Part } from "./node-snapshot.ts";

/**
 * Reads the usage of pods, by UID. Throws only the signal's reason.
 * @param reads the fields to read, such as "pod.usage.cpu"
 */
export type PodUsageReader = (
  pods: readonly ObservedPod[],
  reads: readonly string[],
  signal: AbortSignal,
) => Promise<Part<ReadonlyMap<string, PodUsage>>>;

/** Facts about a pod that its EvictionPod does not contain. */
export interface PodContext {
  usage: PodUsage;
  /** Milliseconds since the epoch. */
  now: number;
}

/** The variable `pod`, or the problem of a field to read that is unknown. */
export type PodVariable = { pod: Record<string, unknown> } | { unknown: string };

/**
 * Returns a pod as the variable of expressions. Never throws.
 * @param reads the fields that the expressions read, such as "pod.usage.rss"
 */
export function podVariable(
  { pod, details }: ObservedPod,
  reads: readonly string[],
  { usage, now }: PodContext,
): PodVariable {
  const variable: Record<string, unknown> = {
    name: pod.name,
    namespace: pod.namespace,
    labels: pod.labels,
    annotationKeys: pod.annotationKeys,
    qosClass: pod.qosClass,
    qosLevel: pod.qosLevel,
    priority: pod.priority,
    usage,
    // In seconds; 0 if the clock was set back before the start time.
    age: pod.startTime === null ? undefined : Math.max(now - pod.startTime, 0) / 1000,
    ownerKind: pod.owner?.kind ?? "",
  };
  if (reads.some((path) => path.startsWith("pod.requests."))) {
    // Recorded pods have no requests.
    if (!details.spec) return { unknown: "its requests can't be read: no file has them" };
    const requests = podRequests(details);
    variable.requests = {
      cpu: unitsOf(requests.get("cpu") ?? 0n),
      memory: unitsOf(requests.get("memory") ?? 0n),
      ephemeralStorage: unitsOf(requests.get("ephemeral-storage") ?? 0n),
    };
  }
  for (const path of reads) {
    const problem = problemOf(variable, path);
    if (problem !== undefined) return { unknown: problem };
  }
  return { pod: variable };
}

function problemOf(variable: Readonly<Record<string, unknown>>, path: string): string | undefined {
  const [, name = "", field] = path.split(".");
  const value = variable[name];
  if (name === "labels" || name === "annotationKeys") {
    const { length } = Array.isArray(value) ? value : Object.keys(value as object);
    return length > MOST_ENTRIES ? `${path} has ${length} entries, more than ${MOST_ENTRIES}` : undefined;
  }
  const found = field === undefined ? value : (value as Record<string, unknown>)[field];
  if (typeof found === "string" || Number.isFinite(found)) return undefined;
  return `${path} is not known`;
}
