import { randomUUID } from "node:crypto";
import type { KubeObject } from "@nodekeeper/core/kube";
import { badRequest, expired, StatusError } from "../status.ts";
import type { ListMeta } from "./representation.ts";

/** Snapshots are arrays of shared objects and therefore cheap. */
const MAX_SNAPSHOTS = 64;

interface Snapshot {
  storage: string;
  objects: KubeObject[];
  revision: number;
}

/**
 * Paginates lists. All pages of a list have the same revision, because the remaining objects are kept as a snapshot.
 */
export class ListPager {
  readonly #snapshots = new Map<string, Snapshot>();

  /** Returns the first page of a list, or all items if `limit` is 0. */
  first(
    storage: string,
    objects: KubeObject[],
    revision: number,
    limit: number,
  ): { items: KubeObject[]; metadata: ListMeta } {
    return this.#page({ storage, objects, revision }, 0, limit);
  }

  /** Returns the page for a continue token. Throws a 410 if its snapshot is no longer available. */
  next(storage: string, token: string, limit: number): { items: KubeObject[]; metadata: ListMeta } {
    const [id, position] = Buffer.from(token, "base64url").toString("utf8").split("/");
    const start = Number(position);
    if (!id || !Number.isInteger(start) || start < 0) throw badRequest("continue key is not valid");
    const snapshot = this.#snapshots.get(id);
    if (!snapshot || snapshot.storage !== storage) {
      throw expired(
        "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
      );
    }
    return this.#page(snapshot, start, limit, id);
  }

  #page(
    snapshot: Snapshot,
    start: number,
    limit: number,
    known?: string,
  ): { items: KubeObject[]; metadata: ListMeta } {
    const { objects, revision } = snapshot;
    const resourceVersion = String(revision);
    const end = limit > 0 ? start + limit : objects.length;
    const items = start === 0 && end >= objects.length ? objects : objects.slice(start, end);
    if (end >= objects.length) return { items, metadata: { resourceVersion } };
    const id = known ?? this.#keep(snapshot);
    const token = Buffer.from(`${id}/${end}`).toString("base64url");
    return {
      items,
      metadata: { resourceVersion, continue: token, remainingItemCount: objects.length - end },
    };
  }

  #keep(snapshot: Snapshot): string {
    const id = randomUUID();
    this.#snapshots.set(id, snapshot);
    const [oldest] = this.#snapshots.keys();
    if (this.#snapshots.size > MAX_SNAPSHOTS && oldest) this.#snapshots.delete(oldest);
    return id;
  }
}

/** Parses `resourceVersion`. Throws a 504 for a future version, like the API server. */
export function readRevision(text: string | null, current: number): number | undefined {
  if (text === null || text === "") return undefined;
  if (!/^\d{1,15}$/.test(text))
    throw badRequest(`Invalid value: ${JSON.stringify(text)}: resourceVersion must be a number`);
  const revision = Number(text);
  if (revision <= current) return revision;
  const message = `Timeout: Too large resource version: ${revision}, current: ${current}`;
  throw new StatusError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}
