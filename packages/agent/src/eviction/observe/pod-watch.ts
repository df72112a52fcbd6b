import { type KubeObject, podResource, recordOf, textOf, Watcher } from "@nodekeeper/core/kube";
import type { HealthCheck, Runnable } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { NodePods } from "../parts.ts";
import type { PodObserver } from "../records/pod-history.ts";
import { type EncodablePod, observeJson } from "./observed-pod.ts";

export interface PodWatchOptions
  extends Pick<
    EvictionContext,
    "client" | "nodeName" | "qosLevelOf" | "clock" | "log" | "metrics" | "kubeMetrics"
  > {
  /** Notified of every pod that is added, updated or deleted. */
  observer?: PodObserver;
}

/** A pod with its resourceVersion, so that an unchanged pod is not decoded again. */
interface KnownPod extends EncodablePod {
  resourceVersion: string | undefined;
  serviceAccount: string;
}

// Pods are large, and the process does not return all memory that a page has used.
const PAGE_SIZE = 100;
const MOST_NAMED = 1_000;
// A reopened watch first delivers the changes that were missed. For this time after it opens, in milliseconds, only a
// bookmark implies that all changes are known.
const BACKLOG_MS = 5_000;
// A watch that opens within this time after a list has missed nothing.
const SOON_MS = 50;

/**
 * The pods of one node, from a watch on the API server. Keeps only the fields of each pod that eviction reads and the
 * stripped message, which is encoded when a plugin behind a socket needs it. A malformed object is counted, logged once
 * and skipped; the previous version of the pod is kept, because the pod is not deleted.
 */
export class PodWatch implements NodePods, Runnable {
  readonly name = "eviction-pods";
  readonly #options: PodWatchOptions;
  readonly #watcher: Watcher;
  readonly #pods = new Map<string, KnownPod>();
  readonly #uidByName = new Map<string, string>();
  /** UIDs of forgotten pods, until the watch or a list reports their deletion. UIDs are never used again. */
  readonly #gone = new Set<string>();
  readonly #listeners = new Set<(uid: string) => void>();
  readonly #malformed = new Set<string>();
  #openedAt = Number.NEGATIVE_INFINITY;
  #listedAt = Number.NEGATIVE_INFINITY;
  // Until then, a deletion may be a change that was missed: the watch was opened later than right after a list.
  #missedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: PodWatchOptions) {
    this.#options = options;
    const { client, nodeName, clock, log, kubeMetrics: metrics } = options;
    this.#watcher = new Watcher(
      { client, clock, log, metrics },
      {
        resource: podResource,
        pageSize: PAGE_SIZE,
        fieldSelector: `spec.nodeName=${nodeName}`,
        handler: {
          onReplace: (objects) => {
            this.#listedAt = clock.monotonic();
            this.#replace(objects);
          },
          onOpen: () => {
            this.#openedAt = clock.monotonic();
            if (this.#openedAt - this.#listedAt > SOON_MS) this.#missedUntil = this.#openedAt + BACKLOG_MS;
          },
          onUpsert: (object) => {
            this.#heard();
            this.#upsert(object);
          },
          onBookmark: () => {
            // It follows every change that was missed.
            this.#missedUntil = Number.NEGATIVE_INFINITY;
            options.observer?.heard();
          },
          onDelete: (object) => {
            this.#heard();
            this.#gone.delete(object.metadata.uid ?? "");
            this.#delete(object.metadata.uid, object, clock.monotonic() < this.#missedUntil);
          },
        },
      },
    );
  }

  get isSynced(): boolean {
    return this.#watcher.isSynced;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#watcher.run(signal);
  }

  list(): readonly EncodablePod[] {
    return [...this.#pods.values()];
  }

  get(uid: string): EncodablePod | undefined {
    return this.#pods.get(uid);
  }

  /**
   * Returns the service account of a pod, for the preparation of its claims; undefined if the watch has not reported
   * the pod.
   */
  serviceAccountOf(uid: string): string | undefined {
    return this.#pods.get(uid)?.serviceAccount;
  }

  forget(uid: string): void {
    if (!this.#pods.has(uid)) return;
    this.#gone.add(uid);
    this.#delete(uid);
  }

  onDeleted(listener: (uid: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Returns the readiness check. It fails until the first list, while the watch is forbidden, and while the watch has
   * been lost for longer than `Watcher` tolerates.
   */
  healthCheck(): HealthCheck {
    return { ...this.#watcher.healthCheck(), name: "EvictionPodsKnown" };
  }

  #heard(): void {
    const { observer, clock } = this.#options;
    if (clock.monotonic() - this.#openedAt >= BACKLOG_MS) observer?.heard();
  }

  // Empties the list while reading it, so that the objects, ten times the size of the kept data, can be freed.
  #replace(objects: KubeObject[]): void {
    const listed = new Set<string>();
    for (let object = objects.pop(); object !== undefined; object = objects.pop()) {
      listed.add(object.metadata.uid ?? "");
      this.#upsert(object);
    }
    for (const uid of [...this.#pods.keys()]) if (!listed.has(uid)) this.#delete(uid);
    for (const uid of this.#gone) if (!listed.has(uid)) this.#gone.delete(uid);
    this.#options.observer?.listed(listed);
  }

  #upsert(object: KubeObject): void {
    const { uid = "", resourceVersion } = object.metadata;
    if (this.#gone.has(uid)) return;
    const known = this.#pods.get(uid);
    if (known && resourceVersion !== undefined && known.resourceVersion === resourceVersion) return;
    let observed: EncodablePod;
    try {
      observed = observeJson(object, this.#options.qosLevelOf);
    } catch (error) {
      this.#complain(object, error);
      return;
    }
    const name = nameOf(observed);
    const before = this.#uidByName.get(name);
    if (before !== undefined && before !== uid) this.#delete(before);
    const serviceAccount = textOf(recordOf(object.spec).serviceAccountName);
    this.#pods.set(uid, { ...observed, resourceVersion, serviceAccount });
    this.#uidByName.set(name, uid);
    this.#options.metrics.nodePods.set(this.#pods.size);
    this.#options.observer?.seen(object, observed.pod);
  }

  /** Parameters as those of `PodObserver.left`. */
  #delete(uid: string | undefined, last?: KubeObject, isMissed = false): void {
    const known = uid === undefined ? undefined : this.#pods.get(uid);
    if (uid === undefined || known === undefined) return;
    this.#pods.delete(uid);
    const name = nameOf(known);
    if (this.#uidByName.get(name) === uid) this.#uidByName.delete(name);
    this.#options.metrics.nodePods.set(this.#pods.size);
    this.#options.observer?.left(uid, last, isMissed);
    for (const listener of [...this.#listeners]) listener(uid);
  }

  #complain(object: KubeObject, error: unknown): void {
    const { log, metrics } = this.#options;
    metrics.malformedPods.inc();
    const { namespace, name, uid } = object.metadata;
    const key = `${namespace}/${name}/${uid}`;
    if (this.#malformed.has(key)) return;
    if (this.#malformed.size >= MOST_NAMED) this.#malformed.clear();
    this.#malformed.add(key);
    log.error(
      { err: error, pod: { namespace, name } },
      "ignoring malformed pod; its last valid version, if any, is kept",
    );
  }
}

function nameOf({ pod }: EncodablePod): string {
  return `${pod.namespace}/${pod.name}`;
}
