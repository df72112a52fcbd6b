import type { KubeObject } from "@nodekeeper/core/kube";
import { keyOf } from "../json.ts";
import type { Persistence } from "./persistence.ts";
import { WatchHub } from "./watch-hub.ts";

/** Where a stored object is. */
export interface Location {
  storage: string;
  key: string;
}

interface Shelf {
  objects: Map<string, KubeObject>;
  /** Keys in order, made when a list needs them. */
  sorted: string[] | undefined;
}

/**
 * All objects by kind and key, under one revision counter. Objects are immutable: a change puts a new tree, which
 * may share parts with the old one. Knows nothing of the rules of the API.
 */
export class ObjectStore {
  readonly hub: WatchHub;
  readonly #shelves = new Map<string, Shelf>();
  readonly #byUid = new Map<string, Location>();
  readonly #dependents = new Map<string, Map<string, Location>>();
  #persistence: Persistence | undefined;
  #revision = 1;

  /** @param historyLimit how many changes are kept per kind for watches */
  constructor(historyLimit: number) {
    this.hub = new WatchHub(historyLimit);
  }

  /** The revision of the last change. */
  get revision(): number {
    return this.#revision;
  }

  /** Takes over what was kept, and writes every change there from now on. */
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

  /** All objects of a kind, ordered by namespace and name. */
  list(storage: string): KubeObject[] {
    const shelf = this.#shelves.get(storage);
    if (!shelf) return [];
    shelf.sorted ??= [...shelf.objects.keys()].sort();
    return shelf.sorted.map((key) => shelf.objects.get(key)!);
  }

  /** Where the object with this uid is. */
  locate(uid: string): Location | undefined {
    return this.#byUid.get(uid);
  }

  /** The objects that name this uid as an owner. */
  dependentsOf(uid: string): Location[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  /** Stores an object under a new revision and notifies the watchers. Returns it with its resourceVersion. */
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

  /** Removes an object under a new revision. Returns its last state; undefined where there was none. */
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
