import type { KubeApiClient, KubeObject, ObjectMeta } from "../kube/index.ts";
import { codeOf, NodekeeperError } from "../lib/index.ts";
import type { StoredSlice } from "./checked.ts";
import type { Desired } from "./driver.ts";
import { type DroppedField, droppedFields, type Feature, featuresBehindRefusal } from "./features.ts";
import type { DeviceMetrics } from "./metrics.ts";
import type { NamedResources, SliceSpec } from "./model.ts";
import { planSlices } from "./plan.ts";
import { encodeModel, planModels, type StoredModel } from "./plan-models.ts";
import { isStale, knownSlice, managedByLabel, type SliceApi } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";
import { decodeSpec, encodeSlice } from "./versions.ts";

export interface SliceWriterOptions {
  client: KubeApiClient;
  api: SliceApi;
  cache: SliceCache;
  nodeName: string;
  /** The Node's UID, for the owner reference; read anew after it was said to be stale. */
  nodeUid: (signal: AbortSignal) => Promise<string>;
  metrics: DeviceMetrics;
}

/** What a round of writes of one driver came to. */
export interface WriteResult {
  writes: number;
  /** Slices that could not be written, by name. */
  failures: Map<string, unknown>;
  /** What the server silently left out. */
  dropped: DroppedField[];
  /** Features that the server turns out not to have. */
  missing: Set<Feature>;
}

type Stored = StoredSlice | StoredModel;
type Content = { spec: SliceSpec } | { model: NamedResources };
interface Plan {
  deletes: Stored[];
  updates: ({ stored: Stored } & Content)[];
  creates: ({ name: string } & Content)[];
}

/** Brings the slices of one driver to what it wants, one write after another. */
export class SliceWriter {
  readonly #options: SliceWriterOptions;
  // What the server made of a slice that it did not store as sent: the same is not sent again for ever.
  readonly #accepted = new Map<string, { text: string; resourceVersion: string | undefined }>();

  constructor(options: SliceWriterOptions) {
    this.#options = options;
  }

  /** Throws what concerns all slices: no way to the server, no right. What concerns one is in the result. */
  async write(driver: string, desired: Desired, signal: AbortSignal): Promise<WriteResult> {
    const result: WriteResult = { writes: 0, failures: new Map(), dropped: [], missing: new Set() };
    const plan = this.#plan(driver, desired);
    for (const stored of plan.deletes)
      await this.#try(result, stored.name, () => this.#delete(stored, signal));
    for (const update of plan.updates) {
      const { stored } = update;
      const metadata = { ...stored.metadata, labels: { ...stored.metadata.labels, ...managedByLabel } };
      const object = this.#encode(driver, metadata, update);
      const text = JSON.stringify(object.spec ?? object.namedResources);
      const accepted = this.#accepted.get(stored.name);
      if (accepted?.text === text && accepted.resourceVersion === stored.metadata.resourceVersion) continue;
      await this.#try(result, stored.name, () => this.#update(stored, object, update, text, result, signal));
    }
    for (const create of plan.creates) {
      await this.#try(result, create.name, () => this.#create(driver, create, result, signal));
    }
    return result;
  }

  #plan(driver: string, { pools, models }: Desired): Plan {
    const { api, cache, nodeName } = this.#options;
    const stored = cache.of(driver).map(({ object }) => object);
    if (api.version === "v1alpha2") {
      return planModels({ driver, nodeName, models, stored: stored as StoredModel[] });
    }
    return planSlices({ driver, nodeName, pools, stored: stored as StoredSlice[] });
  }

  async #try(result: WriteResult, name: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
      result.writes++;
    } catch (error) {
      if (!concernsOneSlice(error)) throw error;
      result.failures.set(name, error);
    }
  }

  async #delete(stored: Stored, signal: AbortSignal): Promise<void> {
    const { client, api, cache, metrics } = this.#options;
    const { uid = "", resourceVersion } = stored.metadata;
    const preconditions = { uid, ...(resourceVersion ? { resourceVersion } : {}) };
    try {
      await client.delete(api.resource, stored.name, { preconditions, signal });
      metrics.writes.inc({ operation: "delete", result: "ok" });
    } catch (error) {
      metrics.writes.inc({ operation: "delete", result: codeOf(error) });
      if (codeOf(error) === "conflict") await this.#reread(stored.name, uid, signal);
      if (codeOf(error) !== "notFound") throw error;
    }
    cache.gone(stored.name, uid);
  }

  async #update(
    stored: Stored,
    object: KubeObject,
    content: Content,
    text: string,
    result: WriteResult,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, api, metrics } = this.#options;
    try {
      const answer = await client.update(api.resource, object, { signal });
      metrics.writes.inc({ operation: "update", result: "ok" });
      this.#took(answer, content, text, result);
    } catch (error) {
      metrics.writes.inc({ operation: "update", result: codeOf(error) });
      if (isStale(error)) await this.#reread(stored.name, stored.metadata.uid ?? "", signal);
      this.#learn(error, content, result);
      throw error;
    }
  }

  async #create(
    driver: string,
    create: { name: string } & Content,
    result: WriteResult,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, api, nodeName, nodeUid, metrics } = this.#options;
    const owner = {
      apiVersion: "v1",
      kind: "Node",
      name: nodeName,
      uid: await nodeUid(signal),
      controller: true,
    };
    const metadata: ObjectMeta = {
      name: create.name,
      labels: { ...managedByLabel },
      ownerReferences: [owner],
    };
    const object = this.#encode(driver, metadata, create);
    try {
      const answer = await client.create(api.resource, object, { signal });
      metrics.writes.inc({ operation: "create", result: "ok" });
      this.#took(answer, create, JSON.stringify(object.spec ?? object.namedResources), result);
    } catch (error) {
      metrics.writes.inc({ operation: "create", result: codeOf(error) });
      // It is there: made by us with the answer lost, or its label was taken away. Names are the agent's own.
      if (codeOf(error) === "conflict") await this.#reread(create.name, "", signal);
      this.#learn(error, create, result);
      throw error;
    }
  }

  #encode(driver: string, metadata: ObjectMeta, content: Content): KubeObject {
    const { api, nodeName } = this.#options;
    if ("model" in content) return encodeModel(metadata, driver, nodeName, content.model);
    if (api.version === "v1alpha2") throw new NodekeeperError("internal", "a slice with pools for v1alpha2");
    return encodeSlice(api.version, metadata, content.spec);
  }

  #took(answer: KubeObject, content: Content, text: string, result: WriteResult): void {
    const { api, cache } = this.#options;
    cache.wrote(answer);
    const name = answer.metadata.name ?? "";
    this.#accepted.delete(name);
    if (!("spec" in content) || api.version === "v1alpha2") return;
    const dropped = droppedFields(content.spec, decodeSpec(api.version, answer));
    if (dropped.length === 0) return;
    result.dropped.push(...dropped);
    for (const { feature } of dropped) if (feature) result.missing.add(feature);
    this.#accepted.set(name, { text, resourceVersion: answer.metadata.resourceVersion });
  }

  #learn(error: unknown, content: Content, result: WriteResult): void {
    if (codeOf(error) !== "invalid" || !("spec" in content)) return;
    for (const feature of featuresBehindRefusal(content.spec)) result.missing.add(feature);
  }

  // What is really there under the name; what is not ours to touch stays unknown. A list of one, for the right to list
  // is there anyway.
  async #reread(name: string, uid: string, signal: AbortSignal): Promise<void> {
    const { client, api, cache, nodeName } = this.#options;
    const { items } = await client.list(api.resource, { fieldSelector: `metadata.name=${name}`, signal });
    const [object] = items;
    if (uid !== "" && object?.metadata.uid !== uid) cache.gone(name, uid);
    if (object && knownSlice(api, object)?.object.nodeName === nodeName) cache.wrote(object);
  }
}

// The rest is the server's state, or our rights: every other write would meet it too.
function concernsOneSlice(error: unknown): boolean {
  return ["invalid", "conflict", "notFound", "exhausted"].includes(codeOf(error));
}
