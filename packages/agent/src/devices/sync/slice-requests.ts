import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { codeOf, messageOf } from "@nodekeeper/core/lib";
import type { SliceIdentity, StoredSlice } from "../model/checked.ts";
import type { StoredModel } from "../model/stored-model.ts";
import type { SyncContext } from "./context.ts";
import { isMarked, isStale, knownSlice, managedByLabel, type SliceApi } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";

interface Context extends Pick<SyncContext, "client" | "scope" | "nodeUid" | "metrics"> {
  api: SliceApi;
  cache: SliceCache;
}

/** Requests about ResourceSlices, counted in metrics. After a conflict the cache is updated with the stored slice. */
export class SliceRequests {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  get api(): SliceApi {
    return this.#context.api;
  }

  /** Undefined for slices of pools beyond the node. */
  get nodeName(): string | undefined {
    return this.#context.scope.nodeName;
  }

  /**
   * Returns the metadata of a slice to write: the stored metadata, the agent's label, and the Node as owner unless the
   * pool is one beyond the node.
   */
  async metadataOf(slice: string | SliceIdentity, signal: AbortSignal): Promise<ObjectMeta> {
    const { scope, nodeUid } = this.#context;
    const { nodeName } = scope;
    if (typeof slice !== "string" && isMarked(slice.metadata, nodeName)) return slice.metadata;
    const stored: ObjectMeta = typeof slice === "string" ? { name: slice } : slice.metadata;
    const labels = { ...stored.labels, ...managedByLabel };
    if (nodeName === undefined) return { ...stored, labels };
    const owner = {
      apiVersion: "v1",
      kind: "Node",
      name: nodeName,
      uid: await nodeUid.read(signal),
      controller: true,
    };
    const others = (stored.ownerReferences ?? []).filter(
      ({ kind, controller }) => kind !== owner.kind && !controller,
    );
    return {
      ...stored,
      labels,
      ownerReferences: [...others, owner],
    };
  }

  /**
   * Creates the slice, or updates it if the metadata has a resource version.
   * @param read returns what the cache stores of the server's answer
   */
  async write(
    object: KubeObject,
    read: (answer: KubeObject) => StoredSlice | StoredModel,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, cache, metrics } = this.#context;
    const { name = "", uid = "", resourceVersion } = object.metadata;
    const operation = resourceVersion === undefined ? "create" : "update";
    cache.expect(name);
    try {
      const answer = await client[operation](this.api.resource, object, { signal });
      metrics.writes.inc({ operation, result: "ok" });
      cache.wrote(answer, read(answer));
    } catch (error) {
      metrics.writes.inc({ operation, result: codeOf(error) });
      // A create conflicts if the answer to an earlier one was lost, or if the slice's label was removed.
      if (isStale(error)) await this.#reread(name, uid, signal);
      throw error;
    } finally {
      cache.arrived(name);
    }
  }

  /** Returns what the server would store. Changes nothing. */
  async dryRun(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    const { client, metrics } = this.#context;
    const operation = object.metadata.resourceVersion === undefined ? "create" : "update";
    try {
      const answer = await client[operation](this.api.resource, object, { dryRun: true, signal });
      metrics.writes.inc({ operation: "dryRun", result: "ok" });
      return answer;
    } catch (error) {
      metrics.writes.inc({ operation: "dryRun", result: codeOf(error) });
      if (isStale(error)) await this.#reread(object.metadata.name ?? "", object.metadata.uid ?? "", signal);
      throw error;
    }
  }

  async delete(slice: SliceIdentity, signal: AbortSignal): Promise<void> {
    const { client, cache, metrics } = this.#context;
    const { uid = "", resourceVersion } = slice.metadata;
    const preconditions = { uid, ...(resourceVersion ? { resourceVersion } : {}) };
    try {
      await client.delete(this.api.resource, slice.name, { preconditions, signal });
      metrics.writes.inc({ operation: "delete", result: "ok" });
    } catch (error) {
      metrics.writes.inc({ operation: "delete", result: codeOf(error) });
      if (codeOf(error) === "conflict") await this.#reread(slice.name, uid, signal);
      if (codeOf(error) !== "notFound") throw error;
    }
    cache.deleted(slice.name, uid);
  }

  // Lists by name, because the agent needs permission to list anyway.
  async #reread(name: string, uid: string, signal: AbortSignal): Promise<void> {
    const { client, cache, scope } = this.#context;
    const { items } = await client.list(this.api.resource, {
      fieldSelector: `metadata.name=${name}`,
      signal,
    });
    const [object] = items;
    if (uid !== "" && object?.metadata.uid !== uid) cache.deleted(name, uid);
    const known = object && knownSlice(this.api, object, scope.nodeName);
    if (!known || known.nodeName !== scope.nodeName) return;
    if (scope.driver === undefined || known.driver === scope.driver) cache.read(object);
  }
}

/** Returns whether the server refuses this object, as opposed to all objects or being unable to answer. */
export function isRefusal(error: unknown): boolean {
  return ["invalid", "forbidden", "exhausted"].includes(codeOf(error));
}

/** Returns whether a dry run failed only because an admission webhook does not support dry runs. */
export function lacksDryRun(error: unknown): boolean {
  return isRefusal(error) && /does not support dry run/i.test(messageOf(error));
}

/**
 * Runs `work` on all items, at most `limit` at a time. After the first error no more are started; rejects with it once
 * the started ones are done.
 */
export async function forEachAtMost<Item>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failure: { error: unknown } | undefined;
  const lane = async () => {
    while (next < items.length && !failure) {
      try {
        await work(items[next++]!);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  if (failure) throw failure.error;
}
