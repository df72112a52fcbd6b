import type { KubeObject, WatchHandler } from "../kube/index.ts";
import { Canonical } from "./canonical.ts";
import { type KnownSlice, knownSlice, type SliceApi } from "./slice-api.ts";

export interface SliceCacheOptions {
  api: SliceApi;
  /** Somebody else changed, made or removed a slice of this driver; or the first list told of it. */
  onForeign: (driver: string) => void;
  onSynced: () => void;
}

const MOST_TOMBSTONES = 10_000;

/**
 * The agent's own slices as the API server has them: what the watch tells, with our own writes folded in, so that a
 * watch that is behind never has a slice made twice, nor one deleted that took the place of another.
 */
export class SliceCache implements WatchHandler {
  readonly #options: SliceCacheOptions;
  readonly #byName = new Map<string, KnownSlice>();
  // UIDs of slices that are gone for good.
  readonly #tombstones = new Set<string>();
  // Written by us and not yet seen in the watch.
  readonly #unseen = new Set<string>();
  readonly #canonical = new Canonical();
  isSynced = false;

  constructor(options: SliceCacheOptions) {
    this.#options = options;
  }

  /** The slices of a driver. */
  of(driver: string): KnownSlice[] {
    return [...this.#byName.values()].filter((slice) => slice.driver === driver);
  }

  /** Drivers that have slices. */
  drivers(): Set<string> {
    return new Set([...this.#byName.values()].map(({ driver }) => driver));
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Takes the server's answer to a write of ours. */
  wrote(object: KubeObject): void {
    const known = this.#known(object);
    if (!known) return;
    this.#byName.set(known.object.name, known);
    this.#unseen.add(known.uid);
  }

  /** We deleted it, or learnt that it is gone. */
  gone(name: string, uid: string): void {
    this.#bury(uid);
    if (this.#byName.get(name)?.uid === uid) this.#byName.delete(name);
  }

  onReplace(objects: KubeObject[]): void {
    const listed = new Set<string>();
    for (const object of objects) {
      listed.add(object.metadata.uid ?? "");
      this.onUpsert(object);
    }
    for (const [name, { uid, driver }] of [...this.#byName]) {
      // A list that is older than our write does not have it yet; the watch that follows tells.
      if (listed.has(uid) || this.#unseen.has(uid)) continue;
      this.gone(name, uid);
      this.#options.onForeign(driver);
    }
    if (this.isSynced) return;
    this.isSynced = true;
    this.#options.onSynced();
  }

  onUpsert(object: KubeObject): void {
    const { name = "", uid = "" } = object.metadata;
    if (this.#tombstones.has(uid)) return;
    const before = this.#byName.get(name);
    if (before?.uid === uid) {
      this.#unseen.delete(uid);
      const order = compareVersions(object, before);
      if (order <= 0) return;
    }
    const known = this.#known(object);
    if (!known) return;
    this.#byName.set(name, known);
    this.#options.onForeign(known.driver);
    if (before && before.driver !== known.driver) this.#options.onForeign(before.driver);
  }

  onDelete(object: KubeObject): void {
    const { name = "", uid = "" } = object.metadata;
    this.#bury(uid);
    const before = this.#byName.get(name);
    if (before?.uid !== uid) return;
    this.#byName.delete(name);
    this.#options.onForeign(before.driver);
  }

  #known(object: KubeObject): KnownSlice | undefined {
    return knownSlice(this.#options.api, object, this.#canonical);
  }

  #bury(uid: string): void {
    this.#unseen.delete(uid);
    this.#tombstones.add(uid);
    if (this.#tombstones.size <= MOST_TOMBSTONES) return;
    const [oldest] = this.#tombstones;
    if (oldest !== undefined) this.#tombstones.delete(oldest);
  }
}

// Versions of one object count up; what is no number is taken as newer.
function compareVersions(object: KubeObject, known: KnownSlice): number {
  const now = Number(object.metadata.resourceVersion);
  const before = Number(known.object.metadata.resourceVersion);
  if (Number.isNaN(now) || Number.isNaN(before))
    return object.metadata.resourceVersion === known.object.metadata.resourceVersion ? 0 : 1;
  return now - before;
}
