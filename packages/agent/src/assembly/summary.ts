import type { EvictionPart } from "./eviction.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { ReportingPart } from "./reporting.ts";

/** The agent's current figures. */
export interface AgentSummary {
  /** Reporter plugins that are connected. */
  plugins: number;
  objects: number;
  /** Pods in the container runtime; undefined if lifecycle is disabled. */
  pods: number | undefined;
  /** Lifecycle events emitted so far, also by earlier processes of the agent; undefined if lifecycle is disabled. */
  events: number | undefined;
  /** Pods that were evicted and deleted; undefined if eviction is disabled. */
  evicted: number | undefined;
  /** Objects with unwritten changes. */
  pending: number;
  /** Writes accepted by the API server since the start. */
  writes: number;
  /** Wall milliseconds. */
  lastWriteAt: number | undefined;
  /** Why an object can't be published. */
  problem: string | undefined;
}

export function summaryOf(
  { manager, publisher }: ReportingPart,
  lifecycle: LifecyclePart | undefined,
  eviction: EvictionPart | undefined,
): AgentSummary {
  const objects = publisher.status();
  const writes = objects.flatMap(({ lastWriteAt }) => lastWriteAt ?? []);
  return {
    plugins: manager.status().filter(({ state }) => state === "running").length,
    objects: objects.length,
    pods: lifecycle?.generator.statuses.uids().length,
    events: lifecycle?.generator.events.last,
    evicted: eviction?.evicted(),
    pending: objects.filter(({ pending }) => pending).length,
    writes: objects.reduce((sum, { writes }) => sum + writes, 0),
    lastWriteAt: writes.length > 0 ? Math.max(...writes) : undefined,
    problem: objects.find(({ lastError }) => lastError)?.lastError,
  };
}
