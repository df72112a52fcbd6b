import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { LifecycleEvent } from "../../live.ts";
import type { Range } from "./scale.ts";

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
  /** Whether its exit was not observed. `to` is then the time when it was found missing. */
  isLost: boolean;
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

/** Adds events in log order. The same events yield the same bars, regardless of how they are split into batches. */
export function addEvents(pods: Pods, events: Iterable<LifecycleEvent>): void {
  for (const { type, at, pod, container, exitCode, reason } of events) {
    if (!container) continue;
    const { bars } = podIn(pods, pod);
    const known = bars.get(container.id);
    if (type === "ContainerStarted") {
      if (!known) bars.set(container.id, { ...newBar(container), from: at });
      continue;
    }
    if (known?.to !== undefined) continue;
    // The clock may have been set back since the start.
    const to = Math.max(at, known?.from ?? at);
    if (type === "ContainerDied")
      bars.set(container.id, { ...(known ?? newBar(container)), to, exitCode, reason });
    else if (known) bars.set(container.id, { ...known, to });
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
    ...{ from: undefined, to: undefined, exitCode: undefined, reason: "", attempt: undefined, isLost: false },
  };
}

/**
 * Returns the bars of events, supplemented by the runtime's list of existing pods: containers without an event, restart
 * counts, and starts before the events. It does not override what events show.
 * @param listed undefined until known; pods up to the event `sequence`, as of `at`
 */
export function barsOf(
  events: Iterable<LifecycleEvent>,
  listed?: { pods: readonly PodStatus[]; sequence: number; at: number },
): Pods {
  const pods: Pods = new Map();
  const all = [...events];
  addEvents(pods, all);
  if (!listed) return pods;
  const startedLater = new Set<string>();
  for (const { sequence, container } of all)
    if (container && sequence > listed.sequence) startedLater.add(container.id);
  const present = new Set<string>();
  for (const pod of listed.pods) {
    const known = podIn(pods, pod);
    const { bars } = known;
    // Lists are newest first.
    for (const container of [...pod.containers, ...pod.sandboxes].reverse()) {
      present.add(container.id);
      const bar = bars.get(container.id);
      const merged = bar ? completed(bar, container) : listedBar(container);
      if (merged) bars.set(container.id, merged);
    }
    known.bars = oldestFirst(bars);
  }
  // Its exit event was missed.
  for (const { bars } of pods.values())
    for (const [id, bar] of bars)
      if (bar.to === undefined && !present.has(id) && !startedLater.has(id))
        bars.set(id, { ...bar, to: Math.max(listed.at, bar.from ?? listed.at), isLost: true });
  return pods;
}

// A relist emits events in no particular order, and the runtime may list containers older than all known events.
function oldestFirst(bars: ReadonlyMap<string, Bar>): Map<string, Bar> {
  const start = ({ from, to = 0 }: Bar) => from ?? to;
  return new Map([...bars].sort(([, a], [, b]) => start(a) - start(b)));
}

type Listed = PodStatus["containers"][number];

// The runtime and the agent share the node's clock, but it may have been set between the two readings.
function completed(bar: Bar, { attempt, startedAt, createdAt, exitCode, reason }: Listed): Bar {
  const started = startedAt ?? createdAt;
  const from = bar.from ?? (started === undefined ? undefined : Math.min(started, bar.to ?? started));
  const isExited = bar.to !== undefined;
  return {
    ...bar,
    from,
    attempt,
    exitCode: bar.exitCode ?? (isExited ? exitCode : undefined),
    reason: bar.reason || (isExited ? reason : ""),
  };
}

function listedBar(container: Listed): Bar | undefined {
  const { state, startedAt, createdAt, finishedAt, exitCode, reason, attempt } = container;
  const from = startedAt ?? createdAt;
  if (state === "running") return { ...newBar(container), from, attempt };
  if (state !== "exited" || finishedAt === undefined) return undefined;
  return {
    ...newBar(container),
    from: Math.min(from ?? finishedAt, finishedAt),
    to: finishedAt,
    exitCode,
    reason,
    attempt,
  };
}

// The exit code of a process terminated by SIGTERM: it was asked to stop.
const TERMINATED = 143;

export type BarEnd = "running" | "completed" | "stopped" | "failed" | "oom" | "unknown";

/** Classifies a bar's end, which determines its color and shape. */
export function endOf({ to, exitCode, reason, isLost }: Bar): BarEnd {
  if (to === undefined) return "running";
  if (reason === "OOMKilled") return "oom";
  if (isLost || exitCode === undefined) return "unknown";
  if (exitCode === TERMINATED) return "stopped";
  return exitCode === 0 ? "completed" : "failed";
}

/** Whether a bar overlaps a range. */
export function isWithin({ from, to }: Bar, range: Range): boolean {
  return (from ?? Number.NEGATIVE_INFINITY) <= range.to && (to ?? Number.POSITIVE_INFINITY) >= range.from;
}
