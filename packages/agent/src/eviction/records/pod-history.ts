import type { EvictionPod, PodReference } from "@nodekeeper/api/decide";
import { StateDamaged } from "@nodekeeper/api/errors";
import { type ContainerExit, MOST_EXITS, type NodePod, type PodEnding } from "@nodekeeper/api/records";
import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { KubeObject } from "@nodekeeper/core/kube";
import { type Clock, type Logger, NodekeeperError, type Runnable, sleepOrAbort } from "@nodekeeper/core/lib";
import {
  type EventSource,
  formatCursor,
  type PodLifecycleEvent,
  parseCursor,
} from "../../lifecycle/index.ts";
import {
  Backlog,
  type HistoryStore,
  type StoredNodeEvent,
  type StoredNodePod,
  WriteBehind,
} from "../../state/index.ts";
import { endingOf, exitsOf, type MemoryLimits, memoryLimitsOf } from "./pod-ending.ts";

/** An OOM-killed container. */
export interface OomKill {
  pod: PodReference;
  exit: ContainerExit;
  /** The container's memory limit as in the pod spec; null if there is none, undefined if it is unknown. */
  limit: string | null | undefined;
  /** Last known memory usage of the pod, bytes; undefined if it was not read. */
  usageBytes: number | undefined;
}

/** Receives changes of the node's pods from `PodWatch`. */
export interface PodObserver {
  /** A pod was added or updated. */
  seen(object: KubeObject, pod: EvictionPod): void;
  /**
   * A pod was deleted.
   * @param last its last object; undefined if the deletion was not watched
   * @param isMissed whether the deletion may be one of the changes that were missed before the watch was opened again
   */
  left(uid: string, last: KubeObject | undefined, isMissed: boolean): void;
  /** A list is complete: these are all pods of the node. */
  listed(uids: ReadonlySet<string>): void;
  /**
   * All changes until now are known: the watch has delivered a bookmark, or an event that is not one of the changes
   * that were missed before the watch was opened.
   */
  heard(): void;
}

export interface PodHistoryOptions {
  store: HistoryStore;
  /** Undefined if no container runtime is configured. */
  events: EventSource | undefined;
  settings: () => Pick<EvictionSettings["records"], "maxAge">;
  /** Returns the last known memory usage of a pod, bytes; undefined if it was not read. */
  memoryUsageOf: (uid: string) => number | undefined;
  onOomKill: (kill: OomKill) => void;
  clock: Clock;
  log: Logger;
}

// Delay that combines the changes at the end of a pod into one transaction, milliseconds.
const SAVE_AFTER_MS = 200;
// Interval at which the time until which the history is complete is saved, milliseconds.
const HEARTBEAT_MS = 5 * 60_000;
const MOST_LEFT = 5_000;
const MOST_ALIASES_LEFT = 16;
// Bounds memory while the database can't be written.
const MOST_UNSAVED = 2_000;
const STATIC_POD_UID = "kubernetes.io/config.hash";
const OOM_KILLED = "OOMKilled";

/**
 * The history of every pod of the node, regardless of which client or component caused a change: when and why the pod
 * was deleted, and how its containers exited. The sources are the watch of pods and pod lifecycle events, merged by
 * container ID. The history is kept in the state database as long as the records of eviction.
 *
 * 1. A pod that was deleted while the agent was not watching is found by the next list. `lastKnownAt` is then the time
 *    of the last list, watch event or bookmark, possibly received by an earlier agent process.
 * 2. Each OOM kill is reported to `onOomKill`, also one that happened while the agent was not running. It may be reported
 *    again if the agent is killed before it saves the exit.
 * 3. While the state database can't be written, the newest 2,000 pod changes and 2,000 events are kept in memory.
 */
export class PodHistory implements PodObserver, Runnable {
  readonly name = "eviction-history";
  readonly #options: PodHistoryOptions;
  /** Existing pods by UID. */
  readonly #present = new Map<string, NodePod>();
  readonly #limits = new Map<string, MemoryLimits>();
  /** API server UIDs by runtime UID. The two differ for static pods. */
  readonly #aliases = new Map<string, string>();
  readonly #unsavedPods = new Map<string, NodePod>();
  readonly #unsavedEvents = new Backlog<StoredNodeEvent>(MOST_UNSAVED);
  readonly #writes: WriteBehind;
  #cursor: string | null = null;
  #startedAt = 0;
  /** The time until which the history from before the agent's start is complete; null once the watch is synced. */
  #watchedBefore: number | null = null;
  /** The time until which the history of this agent is complete, once the watch is synced. */
  #heardAt = 0;

  constructor(options: PodHistoryOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#writes = new WriteBehind({
      what: "the history of pods",
      write: () => this.#write(),
      onFailure: () => this.#bound(),
      clock,
      log,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { events, clock } = this.#options;
    this.#startedAt = clock.now();
    this.#restore();
    const heartbeat = this.#beat(signal);
    if (events) await this.#readEvents(events, signal);
    await heartbeat;
    this.#writes.soon(0);
    this.#writes.close();
  }

  seen(object: KubeObject, pod: EvictionPod): void {
    const { uid, namespace, name } = pod;
    const { clock } = this.#options;
    const now = clock.now();
    const { labels: _labels, annotationKeys: _keys, ...kept } = pod;
    let entry = this.#present.get(uid);
    const ending = refined(endingOf(object), entry?.ending, now);
    const isNew = entry === undefined;
    if (entry === undefined) {
      entry = {
        ...{ uid, namespace, name },
        ...{ seenAt: now, leftAt: null, lastKnownAt: null, pod: kept, ending, exits: [] },
      };
      this.#present.set(uid, entry);
    }
    const alias = object.metadata.annotations?.[STATIC_POD_UID];
    if (alias !== undefined && alias !== uid) this.#aliases.set(alias, uid);
    this.#limits.set(uid, memoryLimitsOf(object));
    const isChanged = isNew || JSON.stringify(entry.ending) !== JSON.stringify(ending);
    entry.pod = kept;
    entry.ending = ending;
    // Exits from before the agent's start are not reported again.
    const notBefore = isNew ? this.#startedAt : 0;
    const hasExited = this.#addExits(entry, exitsOf(object), notBefore);
    if (isChanged || hasExited) this.#changed(entry);
  }

  left(uid: string, last: KubeObject | undefined, isMissed: boolean): void {
    const entry = this.#present.get(uid);
    if (entry === undefined) return;
    if (last) {
      entry.ending = refined(endingOf(last), entry.ending, this.#options.clock.now());
      this.#addExits(entry, exitsOf(last), 0);
    }
    entry.leftAt = this.#options.clock.now();
    // Clamped to when the pod was here: the wall clock may have been set back, or no watch event received.
    if (!last || isMissed) {
      // A reopened watch may deliver a pod that no longer exists: only its creation is certain.
      const createdAt = Date.parse(`${last?.metadata.creationTimestamp}`) || entry.seenAt;
      const requestedAt = entry.ending.deletion?.requestedAt ?? 0;
      const knownAt = Math.max(this.#watchedBefore ?? this.#heardAt, createdAt, requestedAt);
      entry.lastKnownAt = Math.min(knownAt, entry.leftAt);
    }
    this.#present.delete(uid);
    this.#limits.delete(uid);
    this.#forgetAliases(this.#present.size + MOST_ALIASES_LEFT);
    this.#changed(entry);
  }

  listed(uids: ReadonlySet<string>): void {
    for (const uid of [...this.#present.keys()]) if (!uids.has(uid)) this.left(uid, undefined, true);
    this.#forgetAliases(0);
    // From now on this agent's watch keeps the history complete.
    this.#watchedBefore = null;
    this.heard();
  }

  heard(): void {
    this.#heardAt = this.#options.clock.now();
  }

  /** Adds an event of the node, for example an added taint. @param plugin as in `StoredNodeEvent` */
  addNodeEvent(message: string, plugin?: string): void {
    this.#addEvent("", this.#options.clock.now(), message, plugin);
  }

  #restore(): void {
    const { store, log } = this.#options;
    try {
      const watch = store.watch();
      this.#watchedBefore = watch?.watchedAt ?? null;
      this.#cursor = watch?.cursor ?? null;
      for (const stored of store.present()) {
        const entry = readNodePod(stored);
        if (entry && !this.#present.has(entry.uid)) this.#present.set(entry.uid, entry);
      }
    } catch (error) {
      log.error(
        { errorId: StateDamaged.id, err: error },
        "history of pods can't be read, starting with an empty history",
      );
    }
  }

  async #beat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleepOrAbort(this.#options.clock, HEARTBEAT_MS, signal);
      if (!signal.aborted) this.#writes.flush();
    }
  }

  async #readEvents(events: EventSource, signal: AbortSignal): Promise<void> {
    for await (const item of events.read({ after: this.#positionIn(events) }, signal)) {
      this.#cursor = formatCursor(item.position);
      if (item.kind === "event") this.#onEvent(item.event);
    }
  }

  #positionIn(events: Pick<EventSource, "position">) {
    try {
      return this.#cursor === null ? events.position : parseCursor(this.#cursor);
    } catch {
      return events.position;
    }
  }

  #onEvent({ type, pod, container, exitCode, reason, at }: PodLifecycleEvent): void {
    if (container === undefined || type === "ContainerRemoved") return;
    const entry = this.#find(this.#aliases.get(pod.uid) ?? pod.uid);
    if (entry === undefined) return;
    const { id, name, kind } = container;
    if (kind === "sandbox") {
      this.#addEvent(entry.uid, at, type === "ContainerDied" ? "sandbox stopped" : "sandbox started");
    } else if (type === "ContainerDied") {
      const exit = { id, name, exitCode: exitCode ?? null, reason, at };
      if (this.#addExits(entry, [exit], 0)) this.#changed(entry);
    } else {
      this.#addEvent(entry.uid, at, `container ${name} started`);
    }
  }

  // Containers of a force-deleted pod exit after its deletion.
  #find(uid: string): NodePod | undefined {
    const known = this.#present.get(uid) ?? this.#unsavedPods.get(uid);
    if (known) return known;
    try {
      const stored = this.#options.store.pod(uid);
      return stored && readNodePod(stored);
    } catch {
      return undefined;
    }
  }

  // Returns whether anything is new. The first reported time and reason of an exit are kept.
  #addExits(entry: NodePod, exits: readonly ContainerExit[], notBefore: number): boolean {
    const { onOomKill, memoryUsageOf } = this.#options;
    let isNew = false;
    for (const exit of exits) {
      const known = entry.exits.find((one) => isSameExit(one, exit));
      const wasKill = known?.reason === OOM_KILLED;
      const limits = this.#limits.get(entry.uid);
      const limit = limits && (limits[exit.name] ?? null);
      const memoryLimit = exit.reason === OOM_KILLED && limit != null ? { memoryLimit: limit } : {};
      if (known) {
        if (known.exitCode !== null && (known.reason !== "" || exit.reason === "")) continue;
        known.exitCode ??= exit.exitCode;
        known.reason ||= exit.reason;
        Object.assign(known, memoryLimit);
      } else {
        const added = { ...exit, ...memoryLimit };
        const exits = [...entry.exits, added].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
        const dropped = exits.length > MOST_EXITS ? exits.find(isFollowed) : undefined;
        // Older than those that are kept.
        if (dropped === added) continue;
        entry.exits = exits.filter((one) => one !== dropped);
      }
      isNew = true;
      if (exit.reason !== OOM_KILLED || wasKill || (exit.at ?? 0) < notBefore) continue;
      const { uid, namespace, name } = entry;
      onOomKill({
        pod: { uid, namespace, name },
        exit,
        limit,
        usageBytes: memoryUsageOf(uid),
      });
    }
    return isNew;
  }

  #addEvent(uid: string, at: number, message: string, plugin?: string): void {
    this.#unsavedEvents.add({ uid, at, message, ...(plugin === undefined ? {} : { plugin }) });
    this.#writes.soon(SAVE_AFTER_MS);
  }

  // Removes aliases of deleted pods, oldest first, until at most `most` aliases remain. The newest are kept, because
  // containers of a pod that was just deleted may still exit.
  #forgetAliases(most: number): void {
    for (const [alias, uid] of this.#aliases) {
      if (this.#aliases.size <= most) return;
      if (!this.#present.has(uid)) this.#aliases.delete(alias);
    }
  }

  #changed(entry: NodePod): void {
    this.#unsavedPods.delete(entry.uid);
    this.#unsavedPods.set(entry.uid, entry);
    this.#writes.soon(SAVE_AFTER_MS);
  }

  #write(): void {
    const { store, settings } = this.#options;
    const change = {
      pods: [...this.#unsavedPods.values()].map(storedOf),
      events: this.#unsavedEvents.items,
      watchedAt: this.#watchedBefore ?? this.#heardAt,
      cursor: this.#cursor,
    };
    store.save(change, { maxAgeMs: settings().maxAge, mostLeft: MOST_LEFT });
    this.#unsavedPods.clear();
    this.#unsavedEvents.clear();
  }

  #bound(): void {
    this.#unsavedEvents.bound();
    for (const uid of this.#unsavedPods.keys()) {
      if (this.#unsavedPods.size <= MOST_UNSAVED) return;
      this.#unsavedPods.delete(uid);
    }
  }
}

/** Reads a stored pod of the history; undefined if it is malformed. */
export function readNodePod(stored: StoredNodePod): NodePod | undefined {
  const { uid, namespace, name, seenAt, leftAt, record } = stored;
  try {
    const { pod, ending, exits, lastKnownAt = null } = JSON.parse(record) as Partial<NodePod>;
    if (!pod || !ending || !Array.isArray(exits)) throw new NodekeeperError("corrupt", "parts are missing");
    return { uid, namespace, name, seenAt, leftAt, pod, ending, exits, lastKnownAt };
  } catch {
    return undefined;
  }
}

/** Converts a pod of the history to its stored form. */
export function storedOf({ uid, namespace, name, seenAt, leftAt, ...rest }: NodePod): StoredNodePod {
  return { uid, namespace, name, seenAt, leftAt, record: JSON.stringify(rest) };
}

// The API server's timestamps have a resolution of one second; the observation within that second is more precise. The
// kubelet finishes a pod with a deletion with grace period 0, which overwrites the requested one, so the first deletion
// is kept.
function refined(ending: PodEnding, before: PodEnding | undefined, now: number): PodEnding {
  const exact = (at: number) => (now - at >= 0 && now - at < 1_000 ? now : at);
  const { deletion, disruption } = ending;
  return {
    ...ending,
    deletion: before?.deletion ?? (deletion && { ...deletion, requestedAt: exact(deletion.requestedAt) }),
    disruption:
      disruption && before?.disruption?.reason === disruption.reason
        ? before.disruption
        : disruption && { ...disruption, at: exact(disruption.at ?? now) },
  };
}

function isSameExit(a: ContainerExit, b: ContainerExit): boolean {
  if (a.id !== "" && b.id !== "") return a.id === b.id;
  return a.name === b.name && a.at === b.at;
}

// Returns whether a later exit of the same container is known. The last exit of each container is kept: the pod's status
// states it until the container exits again.
function isFollowed({ name }: ContainerExit, at: number, all: readonly ContainerExit[]): boolean {
  return all.some((later, index) => index > at && later.name === name);
}
