import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { LifecycleEvent } from "../../live.ts";
import type { Range } from "./scale.ts";
import type { Span } from "./spans.ts";

export type PodStatus = ApiAnswers["pods"]["items"][number];

/** A run of a container, as far as known. */
export interface Bar {
  /** The container's id. */
  id: string;
  /** Empty for a sandbox. */
  name: string;
  kind: "container" | "sandbox";
  /** Undefined: it started before the known events. Never after `to`. */
  from: number | undefined;
  /** Undefined: it is running. */
  to: number | undefined;
  exitCode: number | undefined;
  /** As reported by the runtime: "OOMKilled". */
  reason: string;
  /** Restart count. Undefined if unknown. */
  attempt: number | undefined;
  /**
   * Meaning of `to`. "Found missing": the runtime no longer lists the container, and its exit was not observed. "Known
   * until": its exit may be among events that have not been read.
   */
  end: "Exited" | "Found missing" | "Known until";
}

/** The bars of a pod: sandboxes and containers, oldest first by wall-clock time. Live events append theirs. */
export interface PodBars {
  uid: string;
  namespace: string;
  name: string;
  bars: Map<string, Bar>;
}

/** Pods by UID. */
export type Pods = Map<string, PodBars>;

/**
 * Adds events in log order. The resulting bars do not depend on how the events are split into batches. Removals are
 * ignored, because each follows an exit.
 */
export function addEvents(pods: Pods, events: Iterable<LifecycleEvent>): void {
  for (const { type, at, pod, container, exitCode, reason } of events) {
    if (!container) continue;
    const { bars } = podIn(pods, pod);
    const known = bars.get(container.id);
    if (type === "ContainerStarted" && !known) bars.set(container.id, { ...newBar(container), from: at });
    if (type !== "ContainerDied" || known?.to !== undefined) continue;
    // The clock may have been set back since the start.
    const to = Math.max(at, known?.from ?? at);
    bars.set(container.id, { ...(known ?? newBar(container)), to, exitCode, reason });
  }
}

function podIn(
  pods: Pods,
  { uid, namespace, name }: { uid: string; namespace: string; name: string },
): PodBars {
  const known = pods.get(uid);
  if (known) return known;
  const added = { uid, namespace, name, bars: new Map<string, Bar>() };
  pods.set(uid, added);
  return added;
}

function newBar({ id, name, kind }: Pick<Bar, "id" | "name" | "kind">): Bar {
  return {
    ...{ id, name, kind },
    ...{ from: undefined, to: undefined, exitCode: undefined, reason: "", attempt: undefined, end: "Exited" },
  };
}

/**
 * Returns the bars of events, supplemented by the runtime's list of existing pods: containers without an event, restart
 * counts, starts before the events, and exits whose events have not been read. It does not override what events show.
 * @param spans the known events, in log order
 * @param listed undefined until known; pods up to the event `sequence`, as of `at`
 */
export function barsOf(
  spans: readonly Pick<Span, "last" | "events">[],
  listed?: { pods: readonly PodStatus[]; sequence: number; at: number },
): Pods {
  const pods: Pods = new Map();
  // By container ID: the span with its start, if the list lacks the container or has it as exited.
  const startOf = new Map<string, (typeof spans)[number]>();
  for (const span of spans) {
    addEvents(pods, span.events);
    for (const { type, sequence, container } of span.events)
      if (listed && type === "ContainerStarted" && sequence <= listed.sequence)
        startOf.set(container!.id, span);
  }
  if (!listed) return pods;
  for (const pod of listed.pods) {
    const inPod = podIn(pods, pod);
    const { bars } = inPod;
    // Lists are newest first.
    for (const container of [...pod.containers, ...pod.sandboxes].reverse()) {
      if (container.state !== "exited") startOf.delete(container.id);
      const known = bars.get(container.id);
      const bar = completed(known ?? newBar(container), container);
      // A container that was only created has no run.
      if (known || bar.to !== undefined || container.state === "running") bars.set(container.id, bar);
    }
    inPod.bars = oldestFirst(bars);
  }
  for (const { bars } of pods.values())
    for (const [id, bar] of bars) {
      const span = startOf.get(id);
      if (bar.to !== undefined || !span) continue;
      const isMissed = span.last >= listed.sequence;
      const to = isMissed ? listed.at : span.events.at(-1)!.at;
      bars.set(id, { ...bar, to: Math.max(to, bar.from!), end: isMissed ? "Found missing" : "Known until" });
    }
  return pods;
}

// A relist emits events in no particular order, and the runtime may list containers older than all known events.
function oldestFirst(bars: ReadonlyMap<string, Bar>): Map<string, Bar> {
  const start = ({ from, to = 0 }: Bar) => from ?? to;
  return new Map([...bars].sort(([, a], [, b]) => start(a) - start(b)));
}

type Listed = PodStatus["containers"][number];

// The runtime and the agent share the node's clock, but it may have been set between the two readings.
function completed(bar: Bar, listed: Listed): Bar {
  const { state, attempt, startedAt, createdAt, finishedAt, exitCode, reason } = listed;
  const exited = state === "exited" ? finishedAt : undefined;
  const to = bar.to ?? (exited && Math.max(exited, bar.from ?? exited));
  const started = startedAt ?? createdAt;
  const from = bar.from ?? (started && Math.min(started, to ?? started));
  if (to === undefined) return { ...bar, from, attempt };
  return { ...bar, from, to, attempt, exitCode: bar.exitCode ?? exitCode, reason: bar.reason || reason };
}

// The exit code of a process terminated by SIGTERM: it was asked to stop.
const TERMINATED = 143;

export type BarEnd = "running" | "completed" | "stopped" | "failed" | "oom" | "unknown";

/** Classifies a bar's end, which determines its color and shape. */
export function endOf({ to, exitCode, reason }: Bar): BarEnd {
  if (to === undefined) return "running";
  if (reason === "OOMKilled") return "oom";
  if (exitCode === undefined) return "unknown";
  if (exitCode === TERMINATED) return "stopped";
  return exitCode === 0 ? "completed" : "failed";
}

/** Whether a bar overlaps a range. */
export function isWithin({ from, to }: Bar, range: Range): boolean {
  return (from ?? Number.NEGATIVE_INFINITY) <= range.to && (to ?? Number.POSITIVE_INFINITY) >= range.from;
}
