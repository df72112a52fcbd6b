import type { KubeObject, WatchHandler } from "@nodekeeper/core/kube";
import { Canonical } from "../model/canonical.ts";
import type { ForeignSlice, StoredSlice } from "../model/checked.ts";
import type { StoredModel } from "../model/stored-model.ts";
import { type KnownSlice, knownSlice, type SliceApi } from "./slice-api.ts";

export interface SliceCacheOptions {
  api: SliceApi;
  nodeName: string;
  /** Another client changed, created or deleted a slice of this driver; or the first list has one. */
  onForeign: (driver: string) => void;
  onSynced: () => void;
  /** A watch was opened again: the server may have been restarted meanwhile. */
  onReopened: () => void;
}

const MOST_TOMBSTONES = 10_000;
// How the API server writes an event; one that is written otherwise is parsed whole.
const eventOfSlice =
  /^\{"type":"(?:ADDED|MODIFIED)","object":\{"kind":"ResourceSlice","apiVersion":"[^"]*","metadata":\{"name":"([^"\\]+)",(?:"generateName":"[^"\\]*",)?"uid":"([^"\\]+)","resourceVersion":"(\d+)"/;

/**
 * The node's slices as the API server has them: what the watch reports, with the agent's own writes folded in, so that
 * a watch that is behind never has a slice created twice, nor one deleted that took the place of another.
 */
export class SliceCache implements WatchHandler {
  readonly #options: SliceCacheOptions;
  readonly #byDriver = new Map<string, Map<string, KnownSlice>>();
  readonly #driverOf = new Map<string, string>();
  // UIDs of slices that are deleted for good.
  readonly #tombstones = new Set<string>();
  // Names of slices that are being written, with what the watch reported of them meanwhile.
  readonly #expected = new Map<string, (() => void)[]>();
  readonly #canonical = new Canonical();
  #isOpen = false;
  isSynced = false;

  constructor(options: SliceCacheOptions) {
    this.#options = options;
  }

  /** The agent's slices of a driver. */
  of(driver: string): (StoredSlice | StoredModel)[] {
    return this.#slicesOf(driver).flatMap(({ object }) => object ?? []);
  }

  /** Slices of a driver that another client published. */
  foreignOf(driver: string): ForeignSlice[] {
    return this.#slicesOf(driver).flatMap(({ foreign }) => foreign ?? []);
  }

  /** Drivers that have slices of the agent's. */
  drivers(): Set<string> {
    return new Set([...this.#byDriver.keys()].filter((driver) => this.of(driver).length > 0));
  }

  /** How many slices are the agent's. */
  get size(): number {
    let size = 0;
    for (const driver of this.#byDriver.keys()) size += this.of(driver).length;
    return size;
  }

  /** Defers what the watch reports of a slice until `arrived`: most likely it is the write under way. */
  expect(name: string): void {
    if (!this.#expected.has(name)) this.#expected.set(name, []);
  }

  /** The write is over, and its answer, if any, was taken. */
  arrived(name: string): void {
    const held = this.#expected.get(name) ?? [];
    this.#expected.delete(name);
    for (const take of held) take();
  }

  /** Takes the server's answer to a write. `as` is what was sent in the form of a stored slice. */
  wrote(answer: KubeObject, as: StoredSlice | StoredModel): void {
    const { uid, resourceVersion = "", name = "" } = answer.metadata;
    if (!uid || this.#tombstones.has(uid)) return;
    const before = this.#get(name);
    if (before?.uid === uid && compareVersions(resourceVersion, before.resourceVersion) < 0) return;
    const { nodeName } = this.#options;
    this.#put(name, { uid, resourceVersion, driver: as.driver, nodeName, object: as, foreign: undefined });
  }

  /** Takes a slice as it was read after a conflict. */
  read(object: KubeObject): void {
    this.#take(object);
  }

  /** The slice was deleted by the agent, or turned out to be. */
  deleted(name: string, uid: string): void {
    this.#bury(uid);
    if (this.#get(name)?.uid === uid) this.#remove(name);
  }

  // Next to all events are the agent's own writes, each as large as its slice.
  knownVersion(head: string): string | undefined {
    const [, name = "", uid, version = ""] = eventOfSlice.exec(head) ?? [];
    const known = this.#get(name);
    if (!known || known.uid !== uid) return undefined;
    return compareVersions(version, known.resourceVersion) <= 0 ? version : undefined;
  }

  onOpen(): void {
    if (this.#isOpen) this.#options.onReopened();
    this.#isOpen = true;
  }

  onReplace(objects: KubeObject[], listVersion: string): void {
    const listed = new Set<string>();
    for (const object of objects) {
      listed.add(object.metadata.uid ?? "");
      this.onUpsert(object);
    }
    const check = (name: string) => this.#checkListed(name, listed, listVersion);
    for (const [name, held] of this.#expected) held.push(() => check(name));
    for (const name of [...this.#driverOf.keys()]) if (!this.#expected.has(name)) check(name);
    if (this.isSynced) return;
    this.isSynced = true;
    this.#options.onSynced();
  }

  #checkListed(name: string, listed: ReadonlySet<string>, listVersion: string): void {
    const known = this.#get(name);
    if (!known || listed.has(known.uid)) return;
    // A list from before the write does not have the slice yet; one from after it would.
    if (compareVersions(known.resourceVersion, listVersion) > 0) return;
    this.deleted(name, known.uid);
    this.#options.onForeign(known.driver);
  }

  onUpsert(object: KubeObject): void {
    const held = this.#expected.get(object.metadata.name ?? "");
    if (held) {
      held.push(() => this.onUpsert(object));
      return;
    }
    const { name = "", uid = "", resourceVersion = "" } = object.metadata;
    if (this.#tombstones.has(uid)) return;
    const before = this.#get(name);
    if (before?.uid === uid && compareVersions(resourceVersion, before.resourceVersion) <= 0) return;
    const known = this.#take(object);
    if (!known) return;
    this.#options.onForeign(known.driver);
    if (before && before.driver !== known.driver) this.#options.onForeign(before.driver);
  }

  onDelete(object: KubeObject): void {
    const { name = "", uid = "" } = object.metadata;
    const held = this.#expected.get(name);
    // Another client may delete what is being written before its answer is there: then it is to be written once more.
    if (held) {
      held.push(() => this.onDelete(object));
      return;
    }
    this.#bury(uid);
    const before = this.#get(name);
    if (before?.uid !== uid) return;
    this.#remove(name);
    this.#options.onForeign(before.driver);
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

  #bury(uid: string): void {
    this.#tombstones.add(uid);
    if (this.#tombstones.size <= MOST_TOMBSTONES) return;
    const [oldest] = this.#tombstones;
    if (oldest !== undefined) this.#tombstones.delete(oldest);
  }
}

// Resource versions are decimal numbers that count up (KEP-5504); one that is not is taken as newer.
function compareVersions(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  if (Number.isNaN(difference)) return a === b ? 0 : 1;
  return difference;
}
