import type { KubeObject, WatchHandler } from "@nodekeeper/core/kube";
import { type Clock, RecentMap, type WorkQueue } from "@nodekeeper/core/lib";
import { Canonical } from "../model/canonical.ts";
import type { ForeignSlice, StoredSlice } from "../model/checked.ts";
import type { StoredModel } from "../model/stored-model.ts";
import { EVERY_DRIVER } from "./context.ts";
import { type KnownSlice, knownSlice, type SliceApi } from "./slice-api.ts";

export interface SliceCacheOptions {
  api: SliceApi;
  /** Undefined for slices of pools beyond the node. */
  nodeName: string | undefined;
  /** Features of the server. Doubted after the watch is reopened, because the server may have been restarted. */
  features: { doubt(): void };
  /**
   * Receives the drivers whose slices another client changed, and `EVERY_DRIVER` after the first list and a reopened
   * watch.
   */
  queue: Pick<WorkQueue, "add">;
  clock: Pick<Clock, "monotonic">;
}

const MOST_TOMBSTONES = 10_000;
// The API server's encoding of an event. An event in another encoding is parsed in full.
const eventOfSlice =
  /^\{"type":"(?:ADDED|MODIFIED)","object":\{"kind":"ResourceSlice","apiVersion":"[^"]*","metadata":\{"name":"([^"\\]+)",(?:"generateName":"[^"\\]*",)?"uid":"([^"\\]+)","resourceVersion":"(\d+)"/;

/**
 * The node's slices as the API server has them: the watch's reports merged with the agent's own writes. A watch that
 * lags therefore causes no slice to be created twice, and no replaced slice to be deleted.
 */
export class SliceCache implements WatchHandler {
  readonly #options: SliceCacheOptions;
  readonly #byDriver = new Map<string, Map<string, KnownSlice>>();
  readonly #driverOf = new Map<string, string>();
  // UIDs of deleted slices, which never return.
  #tombstones = new RecentMap<string, true>(MOST_TOMBSTONES);
  // Names of slices being written, with the watch events deferred meanwhile.
  readonly #expected = new Map<string, (() => void)[]>();
  readonly #canonical = new Canonical();
  /** By driver, when the first of them arrived, monotonic milliseconds. */
  readonly #foreignChanges = new Map<string, number>();
  #isOpen = false;
  // The newest version that the watch has delivered, in its lists and events.
  #watchedVersion = "0";
  isSynced = false;

  constructor(options: SliceCacheOptions) {
    this.#options = options;
  }

  /** The agent's slices of a driver. */
  of(driver: string): (StoredSlice | StoredModel)[] {
    return this.#slicesOf(driver).flatMap(({ object }) => object ?? []);
  }

  /** The slices of a driver that another client published. */
  foreignOf(driver: string): ForeignSlice[] {
    return this.#slicesOf(driver).flatMap(({ foreign }) => foreign ?? []);
  }

  /** Drivers that have slices of the agent. */
  drivers(): Set<string> {
    return new Set([...this.#byDriver.keys()].filter((driver) => this.of(driver).length > 0));
  }

  /** Number of the agent's slices. */
  get size(): number {
    let size = 0;
    for (const driver of this.#byDriver.keys()) size += this.of(driver).length;
    return size;
  }

  /**
   * Returns the time of the first change by another client to a driver's slices since the last call, in monotonic
   * milliseconds. Slices in the first list count as such a change. Undefined if there was none.
   */
  takeForeignChange(driver: string): number | undefined {
    const changedAt = this.#foreignChanges.get(driver);
    this.#foreignChanges.delete(driver);
    return changedAt;
  }

  /** Defers the watch's events about a slice until `arrived`: most likely they report the write in progress. */
  expect(name: string): void {
    if (!this.#expected.has(name)) this.#expected.set(name, []);
  }

  /** Ends `expect` after the write, whose answer, if any, is stored. Handles the deferred events. */
  arrived(name: string): void {
    const held = this.#expected.get(name) ?? [];
    this.#expected.delete(name);
    for (const take of held) take();
  }

  /** Stores the server's answer to a write. `as` is the slice as it was sent. */
  wrote(answer: KubeObject, as: StoredSlice | StoredModel): void {
    const { uid, resourceVersion = "", name = "" } = answer.metadata;
    if (!uid || this.#tombstones.has(uid)) return;
    const before = this.#get(name);
    if (before?.uid === uid && compareVersions(resourceVersion, before.resourceVersion) < 0) return;
    const { nodeName } = this.#options;
    this.#put(name, { uid, resourceVersion, driver: as.driver, nodeName, object: as, foreign: undefined });
  }

  /** Stores a slice that was read after a conflict. */
  read(object: KubeObject): void {
    this.#take(object);
  }

  /** Records that the agent deleted the slice or found it deleted. */
  deleted(name: string, uid: string): void {
    this.#tombstones.set(uid, true);
    if (this.#get(name)?.uid === uid) this.#remove(name);
  }

  // Avoids parsing events of the agent's own writes, which are nearly all events and as large as their slices.
  knownVersion(head: string): string | undefined {
    const [, name = "", uid, version = ""] = eventOfSlice.exec(head) ?? [];
    const known = this.#get(name);
    if (!known || known.uid !== uid) return undefined;
    if (compareVersions(version, known.resourceVersion) > 0) return undefined;
    this.#watched(version);
    return version;
  }

  onOpen(): void {
    if (this.#isOpen) {
      this.#options.features.doubt();
      this.#options.queue.add(EVERY_DRIVER);
    }
    this.#isOpen = true;
  }

  /**
   * Takes a list that a watch begins with. It is never older than an earlier one, unless etcd was restored from a backup:
   * then nothing that is known counts.
   */
  onReplace(objects: KubeObject[], listVersion: string): void {
    if (compareVersions(listVersion, this.#watchedVersion) < 0) {
      for (const name of [...this.#driverOf.keys()]) this.#remove(name);
      this.#tombstones = new RecentMap<string, true>(MOST_TOMBSTONES);
      this.#options.queue.add(EVERY_DRIVER);
    }
    this.#watchedVersion = listVersion;
    this.compare(objects, listVersion);
  }

  /** Compares what is known with a list, which may be older than the watch. */
  compare(objects: readonly KubeObject[], listVersion: string): void {
    const listed = new Set<string>();
    for (const object of objects) {
      listed.add(object.metadata.uid ?? "");
      this.#upsert(object);
    }
    const check = (name: string) => this.#checkListed(name, listed, listVersion);
    for (const [name, held] of this.#expected) held.push(() => check(name));
    for (const name of [...this.#driverOf.keys()]) if (!this.#expected.has(name)) check(name);
    if (this.isSynced) return;
    this.isSynced = true;
    this.#options.queue.add(EVERY_DRIVER);
  }

  #checkListed(name: string, listed: ReadonlySet<string>, listVersion: string): void {
    const known = this.#get(name);
    if (!known || listed.has(known.uid)) return;
    // A list from before the write does not have the slice yet.
    if (compareVersions(known.resourceVersion, listVersion) > 0) return;
    this.deleted(name, known.uid);
    this.#foreignChange(known.driver);
  }

  onUpsert(object: KubeObject): void {
    this.#watched(object.metadata.resourceVersion);
    this.#upsert(object);
  }

  #watched(version = "0"): void {
    if (compareVersions(version, this.#watchedVersion) > 0) this.#watchedVersion = version;
  }

  #upsert(object: KubeObject): void {
    const held = this.#expected.get(object.metadata.name ?? "");
    if (held) {
      held.push(() => this.#upsert(object));
      return;
    }
    const { name = "", uid = "", resourceVersion = "" } = object.metadata;
    if (this.#tombstones.has(uid)) return;
    const before = this.#get(name);
    if (before?.uid === uid && compareVersions(resourceVersion, before.resourceVersion) <= 0) return;
    const known = this.#take(object);
    if (!known) return;
    this.#foreignChange(known.driver);
    if (before && before.driver !== known.driver) this.#foreignChange(before.driver);
  }

  onDelete(object: KubeObject): void {
    this.#watched(object.metadata.resourceVersion);
    const { name = "", uid = "" } = object.metadata;
    const held = this.#expected.get(name);
    // Another client may delete the slice before the answer to its write arrives. Then it must be written again.
    if (held) {
      held.push(() => this.onDelete(object));
      return;
    }
    this.#tombstones.set(uid, true);
    const before = this.#get(name);
    if (before?.uid !== uid) return;
    this.#remove(name);
    this.#foreignChange(before.driver);
  }

  #foreignChange(driver: string): void {
    if (!this.#foreignChanges.has(driver)) this.#foreignChanges.set(driver, this.#options.clock.monotonic());
    this.#options.queue.add(driver);
  }

  #take(object: KubeObject): KnownSlice | undefined {
    const { api, nodeName } = this.#options;
    const name = object.metadata.name ?? "";
    const known = knownSlice(api, object, nodeName, this.#canonical);
    if (known) this.#put(name, known);
    return known;
  }

  #get(name: string): KnownSlice | undefined {
    const driver = this.#driverOf.get(name);
    return driver === undefined ? undefined : this.#byDriver.get(driver)?.get(name);
  }

  #put(name: string, slice: KnownSlice): void {
    if (this.#driverOf.get(name) !== slice.driver) this.#remove(name);
    const slices = this.#byDriver.get(slice.driver) ?? new Map<string, KnownSlice>();
    slices.set(name, slice);
    this.#byDriver.set(slice.driver, slices);
    this.#driverOf.set(name, slice.driver);
  }

  #remove(name: string): void {
    const driver = this.#driverOf.get(name);
    if (driver === undefined) return;
    this.#driverOf.delete(name);
    const slices = this.#byDriver.get(driver);
    slices?.delete(name);
    if (slices?.size === 0) this.#byDriver.delete(driver);
  }

  #slicesOf(driver: string): KnownSlice[] {
    return [...(this.#byDriver.get(driver)?.values() ?? [])];
  }
}

// Resource versions are increasing decimal numbers (KEP-5504). If either is not a number, `a` counts as newer
// unless both are equal.
function compareVersions(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  if (Number.isNaN(difference)) return a === b ? 0 : 1;
  return difference;
}
