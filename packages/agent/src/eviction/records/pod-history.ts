import type { KubeObject } from "@nodekeeper/core/kube";
import { type Clock, type Logger, NodekeeperError, type Runnable, type Timer } from "@nodekeeper/core/lib";
import {
  type EventSource,
  formatCursor,
  type PodLifecycleEvent,
  parseCursor,
} from "../../lifecycle/index.ts";
import type { HistoryStore, StoredNodeEvent, StoredNodePod } from "../../state/index.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import {
  type ContainerExit,
  endingOf,
  exitsOf,
  type MemoryLimits,
  memoryLimitsOf,
  type PodEnding,
} from "./pod-ending.ts";

/** What the history keeps of a pod that is or was on the node. Plain JSON. Times are wall milliseconds. */
export interface NodePod extends PodReference {
  /** When the agent first saw it. */
  seenAt: number;
  /** When it was deleted from the API server; null while it is there. */
  leftAt: number | null;
  /** Where its deletion was not watched: when it was last known to be there. Null where it was. */
  lastKnownAt: number | null;
  /** As eviction saw it last, without labels and annotations. */
  pod: Omit<EvictionPod, "labels" | "annotationKeys">;
  ending: PodEnding;
  /** Containers that exited, the oldest first, the newest 20. */
  exits: ContainerExit[];
}

/** A container that the kernel killed for lack of memory. */
export interface OomKill {
  pod: PodReference;
  exit: ContainerExit;
  /** Of the container, as the pod spec writes it; null where it has none or it is not known. */
  limit: string | null;
  /** What its pod used when that was last read, bytes; undefined where it was not. */
  usageBytes: number | undefined;
}

/** Is notified of a node's pods by `PodWatch`. */
export interface PodObserver {
  /** A pod was added or has changed. */
  seen(object: KubeObject, pod: EvictionPod): void;
  /** A pod was deleted; `last` is the object as it was, undefined where its deletion was not watched. */
  left(uid: string, last: KubeObject | undefined): void;
  /** These are all pods of the node. */
  listed(uids: ReadonlySet<string>): void;
}

export interface PodHistoryOptions {
  store: HistoryStore;
  /** Undefined where no container runtime is asked. */
  events: EventSource | undefined;
  settings: () => { maxAgeMs: number };
  /** The memory that a pod used when that was last read, bytes; undefined where it was not. */
  memoryUsageOf: (uid: string) => number | undefined;
  onOomKill: (kill: OomKill) => void;
  clock: Clock;
  log: Logger;
}

// A pod's end brings several changes in a row: one transaction for them, milliseconds.
const SAVE_AFTER_MS = 200;
const RETRY_MS = 5_000;
// How exactly a restarted agent knows when a pod was last there, milliseconds.
const HEARTBEAT_MS = 5 * 60_000;
const MOST_EXITS = 20;
const MOST_LEFT = 5_000;
// While the disk is full.
const MOST_UNSAVED = 2_000;
const STATIC_POD_UID = "kubernetes.io/config.hash";
const OOM_KILLED = "OOMKilled";

/**
 * Keeps what happened to every pod of the node, whoever caused it: when it was deleted and why, which containers
 * exited and how. Fed by the watch of pods and by the events of the pod lifecycle; what both say of one container
 * is merged by its id. It is kept in the state database for as long as the records of eviction.
 *
 * 1. A pod that was deleted while no agent ran is found by the first list, with the time it was last known.
 * 2. Each out-of-memory kill is given to `onOomKill` once, over restarts of the agent too.
 * 3. While the state database can't be written, changes wait in memory, the newest 2,000.
 */
export class PodHistory implements PodObserver, Runnable {
  readonly name = "eviction-history";
  readonly #options: PodHistoryOptions;
  /** Pods that are there, by UID. */
  readonly #present = new Map<string, NodePod>();
  readonly #limits = new Map<string, MemoryLimits>();
  /** Static pods have another UID at the runtime than at the API server. */
  readonly #aliases = new Map<string, string>();
  readonly #unsavedPods = new Map<string, NodePod>();
  #unsavedEvents: StoredNodeEvent[] = [];
  #cursor: string | null = null;
  #startedAt = 0;
  /** When the history was last known to be complete, before this agent. */
  #watchedBefore: number | null = null;
  #heardAt = 0;
  #timer: Timer | undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(options: PodHistoryOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { events, clock } = this.#options;
    this.#startedAt = clock.now();
    this.#restore();
    const heartbeat = this.#beat(signal);
    if (events) await this.#readEvents(events, signal);
    await heartbeat;
    this.#save();
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  seen(object: KubeObject, pod: EvictionPod): void {
    const { uid, namespace, name } = pod;
    const { clock } = this.#options;
    const now = clock.now();
    this.#heardAt = now;
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
      const alias = object.metadata.annotations?.[STATIC_POD_UID];
      if (alias !== undefined && alias !== uid) this.#aliases.set(alias, uid);
    }
    this.#limits.set(uid, memoryLimitsOf(object));
    const isChanged = isNew || JSON.stringify(entry.ending) !== JSON.stringify(ending);
    entry.pod = kept;
    entry.ending = ending;
    // What exited before the agent came is no news.
    const notBefore = isNew ? this.#startedAt : 0;
    const hasExited = this.#addExits(entry, exitsOf(object), notBefore);
    if (isChanged || hasExited) this.#changed(entry);
  }

  left(uid: string, last: KubeObject | undefined): void {
    const entry = this.#present.get(uid);
    if (entry === undefined) return;
    if (last) {
      entry.ending = refined(endingOf(last), entry.ending, this.#options.clock.now());
      this.#addExits(entry, exitsOf(last), 0);
    }
    entry.leftAt = this.#options.clock.now();
    if (!last) entry.lastKnownAt = this.#watchedBefore ?? this.#heardAt;
    this.#present.delete(uid);
    this.#limits.delete(uid);
    this.#changed(entry);
  }

  listed(uids: ReadonlySet<string>): void {
    for (const uid of [...this.#present.keys()]) if (!uids.has(uid)) this.left(uid, undefined);
    for (const [alias, uid] of this.#aliases) if (!this.#present.has(uid)) this.#aliases.delete(alias);
    // From here on the watch is this agent's own.
    this.#watchedBefore = null;
    this.#heardAt = this.#options.clock.now();
  }

  /** Adds an event of the node, such as a taint that was added. */
  addNodeEvent(message: string): void {
    this.#addEvent("", this.#options.clock.now(), message);
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
      log.error({ err: error }, "history of pods can't be read, starting from nothing");
    }
  }

  async #beat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(HEARTBEAT_MS, signal).catch(() => {});
      if (!signal.aborted) this.#save();
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

  // Containers of a pod that was deleted by force exit after it.
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

  // Whether anything is new. Of one container the first word on when it exited is kept, and the first reason.
  #addExits(entry: NodePod, exits: readonly ContainerExit[], notBefore: number): boolean {
    const { onOomKill, memoryUsageOf } = this.#options;
    let isNew = false;
    for (const exit of exits) {
      const known = entry.exits.find((one) => isSameExit(one, exit));
      const wasKill = known?.reason === OOM_KILLED;
      const limit = exit.reason === OOM_KILLED ? this.#limits.get(entry.uid)?.[exit.name] : undefined;
      const memoryLimit = limit === undefined ? {} : { memoryLimit: limit };
      if (known) {
        if (known.exitCode !== null && (known.reason !== "" || exit.reason === "")) continue;
        known.exitCode ??= exit.exitCode;
        known.reason ||= exit.reason;
        Object.assign(known, memoryLimit);
      } else {
        entry.exits.push({ ...exit, ...memoryLimit });
        entry.exits.sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
        if (entry.exits.length > MOST_EXITS) entry.exits.shift();
      }
      isNew = true;
      if (exit.reason !== OOM_KILLED || wasKill || (exit.at ?? 0) < notBefore) continue;
      const { uid, namespace, name } = entry;
      onOomKill({
        pod: { uid, namespace, name },
        exit,
        limit: limit ?? null,
        usageBytes: memoryUsageOf(uid),
      });
    }
    return isNew;
  }

  #addEvent(uid: string, at: number, message: string): void {
    this.#unsavedEvents.push({ uid, at, message });
    if (this.#unsavedEvents.length > MOST_UNSAVED) this.#unsavedEvents.shift();
    this.#saveSoon(SAVE_AFTER_MS);
  }

  #changed(entry: NodePod): void {
    this.#unsavedPods.delete(entry.uid);
    this.#unsavedPods.set(entry.uid, entry);
    if (this.#unsavedPods.size > MOST_UNSAVED) {
      const [oldest] = this.#unsavedPods.keys();
      if (oldest !== undefined) this.#unsavedPods.delete(oldest);
    }
    this.#saveSoon(SAVE_AFTER_MS);
  }

  #saveSoon(ms: number): void {
    if (this.#isClosed) return;
    this.#timer ??= this.#options.clock.after(ms, () => {
      this.#timer = undefined;
      this.#save();
    });
  }

  #save(): void {
    const { store, settings, clock, log } = this.#options;
    const change = {
      pods: [...this.#unsavedPods.values()].map(storedOf),
      events: this.#unsavedEvents,
      watchedAt: this.#watchedBefore ?? clock.now(),
      cursor: this.#cursor,
    };
    try {
      store.save(change, { notBefore: clock.now() - settings().maxAgeMs, mostLeft: MOST_LEFT });
      this.#unsavedPods.clear();
      this.#unsavedEvents = [];
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.error({ err: error }, "history of pods can't be saved, it is kept in memory");
      this.#isFailing = true;
      this.#saveSoon(RETRY_MS);
    }
  }
}

/** A pod of the history as it is read back; undefined where its text can't be read. */
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

/** A pod of the history as it is written. */
export function storedOf({ uid, namespace, name, seenAt, leftAt, ...rest }: NodePod): StoredNodePod {
  return { uid, namespace, name, seenAt, leftAt, record: JSON.stringify(rest) };
}

// The API server's times are whole seconds: what is seen within the second happened at that moment, or just before.
// The kubelet confirms a pod's end by a deletion without grace period, which overwrites the one that was requested.
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
