import type { KubeObject } from "@nodekeeper/core/kube";
import { keyOf } from "../json.ts";
import type { Persistence } from "./persistence.ts";
import { WatchHub } from "./watch-hub.ts";

/** Location of a stored object. */
export interface Location {
  storage: string;
  key: string;
}

interface Shelf {
  objects: Map<string, KubeObject>;
  /** Sorted keys, computed when needed by a list. */
  sorted: string[] | undefined;
}

/**
 * All objects by kind and key, with one revision counter. Objects are immutable: a change stores a new tree, which may
 * share parts with the old one. Does not implement API rules.
 */
export class ObjectStore {
  readonly hub: WatchHub;
  readonly #shelves = new Map<string, Shelf>();
  readonly #byUid = new Map<string, Location>();
  readonly #dependents = new Map<string, Map<string, Location>>();
  #persistence: Persistence | undefined;
  #revision = 1;

  /** @param historyLimit number of changes kept for watches, per kind */
  constructor(historyLimit: number) {
    this.hub = new WatchHub(historyLimit);
  }

  /** Revision of the last change. */
  get revision(): number {
    return this.#revision;
  }

  /** Persists all further changes. If `restore` is set, first loads the persisted objects. */
  attach(persistence: Persistence, restore: boolean): void {
    this.#persistence = persistence;
    if (!restore) return;
    const { revision, objects } = persistence.load();
    this.#revision = Math.max(this.#revision, revision);
    for (const { storage, object } of objects) this.#set({ storage, key: keyOf(object) }, object);
    this.hub.startAt(this.#revision);
  }

  detach(): void {
    this.#persistence?.close();
    this.#persistence = undefined;
  }

  get(storage: string, key: string): KubeObject | undefined {
    return this.#shelves.get(storage)?.objects.get(key);
  }

  /** Returns all objects of a kind, ordered by key. */
  list(storage: string): KubeObject[] {
    const shelf = this.#shelves.get(storage);
    if (!shelf) return [];
    shelf.sorted ??= [...shelf.objects.keys()].sort();
    return shelf.sorted.map((key) => shelf.objects.get(key)!);
  }

  /** Returns the location of the object with this UID. */
  locate(uid: string): Location | undefined {
    return this.#byUid.get(uid);
  }

  /** Returns the objects that have this UID as an owner. */
  dependentsOf(uid: string): Location[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  /** Stores an object under a new revision and notifies watchers. Returns it with its resourceVersion. */
  put(storage: string, object: KubeObject): KubeObject {
    const location = { storage, key: keyOf(object) };
    const previous = this.get(storage, location.key);
    const revision = this.#revision + 1;
    const stored = withRevision(object, revision);
    this.#persistence?.write(storage, location.key, stored, revision);
    this.#revision = revision;
    this.#set(location, stored);
    const type = previous ? "MODIFIED" : "ADDED";
    this.hub.publish(storage, { type, object: stored, previous, revision, encoded: new Map() });
    return stored;
  }

  /** Removes an object under a new revision. Returns its last state. Undefined if it does not exist. */
  remove(storage: string, key: string): KubeObject | undefined {
    const previous = this.get(storage, key);
    if (!previous) return undefined;
    const revision = this.#revision + 1;
    this.#persistence?.write(storage, key, undefined, revision);
    this.#revision = revision;
    this.#unset({ storage, key }, previous);
    const object = withRevision(previous, revision);
    this.hub.publish(storage, { type: "DELETED", object, previous, revision, encoded: new Map() });
    return object;
  }

  #set(location: Location, object: KubeObject): void {
    let shelf = this.#shelves.get(location.storage);
    if (!shelf) {
      shelf = { objects: new Map(), sorted: undefined };
      this.#shelves.set(location.storage, shelf);
    }
    const previous = shelf.objects.get(location.key);
    if (!previous) shelf.sorted = undefined;
    shelf.objects.set(location.key, object);
    if (previous) this.#unindex(location, previous);
    this.#index(location, object);
  }

  #unset(location: Location, object: KubeObject): void {
    const shelf = this.#shelves.get(location.storage)!;
    shelf.objects.delete(location.key);
    shelf.sorted = undefined;
    this.#unindex(location, object);
  }

  #index(location: Location, { metadata }: KubeObject): void {
    if (metadata.uid) this.#byUid.set(metadata.uid, location);
    for (const { uid } of metadata.ownerReferences ?? []) {
      const dependents = this.#dependents.get(uid) ?? new Map<string, Location>();
      dependents.set(`${location.storage}\n${location.key}`, location);
      this.#dependents.set(uid, dependents);
    }
  }

  #unindex(location: Location, { metadata }: KubeObject): void {
    if (metadata.uid) this.#byUid.delete(metadata.uid);
    for (const { uid } of metadata.ownerReferences ?? []) {
      const dependents = this.#dependents.get(uid);
      dependents?.delete(`${location.storage}\n${location.key}`);
      if (dependents?.size === 0) this.#dependents.delete(uid);
    }
  }
}

function withRevision(object: KubeObject, revision: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}
