import { messageOf } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../eviction/index.ts";
import { podRequests, unitsOf, type WholePods } from "../pod-usage/index.ts";
import { MOST_ENTRIES } from "./fields.ts";
import type { Part } from "./node-snapshot.ts";

/** What a pod uses; undefined where it is not known. */
export interface PodUsage {
  /** CPUs. */
  cpu?: number | undefined;
  /** As cgroups charge it, bytes. */
  memory?: number | undefined;
  /** `memory` without page cache that was not used lately, bytes. */
  workingSet?: number | undefined;
  /** Anonymous memory, bytes. */
  rss?: number | undefined;
  /** Writable layers of its containers, bytes. */
  disk?: number | undefined;
  /** Inodes of these layers. */
  inodes?: number | undefined;
  /** Processes and threads. */
  pids?: number | undefined;
}

/** What pods use, by UID. Throws the signal's reason alone. @param reads the fields that are wanted: "pod.usage.cpu" */
export type PodUsageReader = (
  pods: readonly ObservedPod[],
  reads: readonly string[],
  signal: AbortSignal,
) => Promise<Part<ReadonlyMap<string, PodUsage>>>;

/** What a policy knows of a pod besides its eviction facts. */
export interface PodContext {
  usage: PodUsage;
  /** Asked where an expression reads requests. */
  wholePods: Pick<WholePods, "of">;
  /** Milliseconds since the epoch. */
  now: number;
}

/** The variable `pod`, or which of the fields that are to be read is not known. */
export type PodVariable = { pod: Record<string, unknown> } | { unknown: string };

/** A pod as expressions see it. Never throws. @param reads the fields they read: "pod.usage.rss" */
export function podVariable(
  observed: ObservedPod,
  reads: readonly string[],
  { usage, wholePods, now }: PodContext,
): PodVariable {
  const { pod } = observed;
  const variable: Record<string, unknown> = {
    name: pod.name,
    namespace: pod.namespace,
    labels: pod.labels,
    annotationKeys: pod.annotationKeys,
    qosClass: pod.qosClass,
    qosLevel: pod.qosLevel,
    priority: pod.priority,
    usage,
    // Seconds; a clock that was set back makes no pod younger than 0.
    age: pod.startTime === null ? undefined : Math.max(now - pod.startTime, 0) / 1000,
    ownerKind: pod.owner?.kind ?? "",
  };
  if (reads.some((path) => path.startsWith("pod.requests."))) {
    try {
      const requests = podRequests(wholePods.of(observed));
      variable.requests = {
        cpu: unitsOf(requests.get("cpu") ?? 0n),
        memory: unitsOf(requests.get("memory") ?? 0n),
        ephemeralStorage: unitsOf(requests.get("ephemeral-storage") ?? 0n),
      };
    } catch (error) {
      return { unknown: `its requests can't be read: ${messageOf(error)}` };
    }
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
