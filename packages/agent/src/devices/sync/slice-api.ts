import { ResourceApiNotServed } from "@nodekeeper/api/errors";
import type { ApiResource, KubeApiClient, KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";
import { Canonical } from "../model/canonical.ts";
import type { ForeignSlice, StoredSlice } from "../model/checked.ts";
import { type StoredModel, storedModel } from "../model/stored-model.ts";
import { decodeSpec, type SliceVersion, sliceVersions, storedSlice } from "../model/versions.ts";
import { nameSuffix, poolKey } from "../plan/slice-names.ts";
import type { SliceScope } from "./context.ts";

export const group = "resource.k8s.io";
const kind = "ResourceSlice";
/** The label of every slice that the agent publishes. Drivers may publish other slices themselves. */
export const managedByLabel = { "app.kubernetes.io/managed-by": "nodekeeper" } as const;

/** The API version of ResourceSlices in use. */
export interface SliceApi {
  version: SliceVersion | "v1alpha2";
  resource: ApiResource;
}

/** A slice, as the cache stores it. */
export interface KnownSlice {
  uid: string;
  driver: string;
  /** Undefined if it is one of a pool beyond the node. */
  nodeName: string | undefined;
  resourceVersion: string;
  /** Undefined for a slice that another client published; only its place in the pool is stored, as `foreign`. */
  object: StoredSlice | StoredModel | undefined;
  foreign: ForeignSlice | undefined;
}

/** Returns the most recent version that the server serves. Throws `unsupported` if it serves none. */
export async function discoverSliceApi(client: KubeApiClient, signal: AbortSignal): Promise<SliceApi> {
  for (const version of [...sliceVersions, "v1alpha2"] as const) {
    const resource = await client.resolve({ group, version, kind }, { signal });
    if (resource) return { version, resource };
  }
  throw new ResourceApiNotServed({
    problem: `the API server serves no ${kind} of ${group}: dynamic resource allocation is off, or it is older than 1.30`,
  });
}

/** Returns the field selector for slices of a scope. v1alpha2 has no pools beyond the node. */
export function fieldSelectorOf({ version }: SliceApi, { nodeName, driver }: SliceScope): string {
  if (version === "v1alpha2") return `nodeName=${nodeName}`;
  const ofNode = `spec.nodeName=${nodeName ?? ""}`;
  return driver === undefined ? ofNode : `${ofNode},spec.driver=${driver}`;
}

/** Lists the slices of a scope, those of any client, from the API server's cache. */
export function listSlices(client: KubeApiClient, api: SliceApi, scope: SliceScope, signal: AbortSignal) {
  const fieldSelector = fieldSelectorOf(api, scope);
  return client.list(api.resource, { fieldSelector, resourceVersion: "0", signal });
}

/**
 * Returns what the cache stores of an object. Undefined if the object has no UID.
 * @param nodeName undefined for slices of pools beyond the node
 */
export function knownSlice(
  { version }: SliceApi,
  object: KubeObject,
  nodeName: string | undefined,
  canonical = new Canonical(),
): KnownSlice | undefined {
  const { uid, resourceVersion = "", name = "" } = object.metadata;
  if (!uid) return undefined;
  const metadata = lean(object.metadata);
  if (version === "v1alpha2") {
    const stored = storedModel(object, canonical);
    const isOurs = hasLabel(metadata) || name.endsWith(nameSuffix(stored.driver, nodeName, ""));
    const common = { uid, resourceVersion, driver: stored.driver, nodeName: stored.nodeName };
    if (isOurs) return { ...common, object: { ...stored, metadata }, foreign: undefined };
    return { ...common, object: undefined, foreign: { name, metadata, pool: "", generation: 0 } };
  }
  const { driver, pool, nodeName: node } = decodeSpec(version, object);
  const common = { uid, resourceVersion, driver, nodeName: node };
  if (hasLabel(metadata) || name.endsWith(nameSuffix(driver, nodeName, poolKey(pool.name)))) {
    const stored = storedSlice(version, object, canonical);
    const isWhole = isMarked(metadata, nodeName);
    return { ...common, object: { ...stored, metadata, isMarked: isWhole }, foreign: undefined };
  }
  const foreign = { name, metadata, pool: pool.name, generation: pool.generation };
  return { ...common, object: undefined, foreign };
}

/**
 * Returns whether a slice has the agent's label and the Node as its controller.
 * @param nodeName undefined for slices of pools beyond the node, for which the label suffices
 */
export function isMarked(metadata: ObjectMeta, nodeName: string | undefined): boolean {
  if (nodeName === undefined) return hasLabel(metadata);
  const owner = metadata.ownerReferences?.find(({ kind, name }) => kind === "Node" && name === nodeName);
  return hasLabel(metadata) && owner?.controller === true;
}

function hasLabel({ labels }: ObjectMeta): boolean {
  return Object.entries(managedByLabel).every(([key, value]) => labels?.[key] === value);
}

// Drops `managedFields`, which are as large as the devices and not needed.
function lean({ managedFields, ...metadata }: ObjectMeta): ObjectMeta {
  return metadata;
}

/** Returns whether a write was refused because the object was deleted or has changed. */
export function isStale(error: unknown): boolean {
  const code = codeOf(error);
  return code === "conflict" || code === "notFound";
}
