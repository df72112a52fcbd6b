import type { ApiResource, KubeApiClient, KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { codeOf, NodekeeperError } from "@nodekeeper/core/lib";
import { Canonical } from "../model/canonical.ts";
import type { ForeignSlice, StoredSlice } from "../model/checked.ts";
import { type StoredModel, storedModel } from "../model/stored-model.ts";
import { decodeSpec, type SliceVersion, sliceVersions, storedSlice } from "../model/versions.ts";
import { nameSuffix, poolKey } from "../plan/slice-names.ts";

export const group = "resource.k8s.io";
const kind = "ResourceSlice";
/** This label is on every slice that the agent published: drivers may publish others by themselves. */
export const managedByLabel = { "app.kubernetes.io/managed-by": "nodekeeper" } as const;

/** The version of ResourceSlices that is spoken with the server. */
export interface SliceApi {
  version: SliceVersion | "v1alpha2";
  resource: ApiResource;
}

/** A slice of this node as the agent remembers it. */
export interface KnownSlice {
  uid: string;
  driver: string;
  nodeName: string;
  resourceVersion: string;
  /** Undefined for a slice that another client published: of it only the place in its pool is remembered. */
  object: StoredSlice | StoredModel | undefined;
  foreign: ForeignSlice | undefined;
}

/** The best version that the server has; throws `unsupported` where it has none. */
export async function discoverSliceApi(client: KubeApiClient, signal: AbortSignal): Promise<SliceApi> {
  for (const version of [...sliceVersions, "v1alpha2"] as const) {
    const resource = await client.resolve({ group, version, kind }, { signal });
    if (resource) return { version, resource };
  }
  throw new NodekeeperError(
    "unsupported",
    `the API server serves no ${kind} of ${group}: dynamic resource allocation is off, or it is older than 1.30`,
    { id: "NK1501" },
  );
}

/** The slices of a node by their field. */
export function fieldSelectorOf({ version }: SliceApi, nodeName: string): string {
  return version === "v1alpha2" ? `nodeName=${nodeName}` : `spec.nodeName=${nodeName}`;
}

/** What is remembered of an object; undefined for what has no UID. */
export function knownSlice(
  { version }: SliceApi,
  object: KubeObject,
  nodeName: string,
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
  const { driver, pool, nodeName: node = "" } = decodeSpec(version, object);
  const common = { uid, resourceVersion, driver, nodeName: node };
  if (hasLabel(metadata) || name.endsWith(nameSuffix(driver, nodeName, poolKey(pool.name)))) {
    const stored = storedSlice(version, object, canonical);
    const isWhole = isMarked(metadata, nodeName);
    return { ...common, object: { ...stored, metadata, isMarked: isWhole }, foreign: undefined };
  }
  const foreign = { name, metadata, pool: pool.name, generation: pool.generation };
  return { ...common, object: undefined, foreign };
}

/** Whether a slice has the agent's label, and the Node as its controller. */
export function isMarked(metadata: ObjectMeta, nodeName: string): boolean {
  const owner = metadata.ownerReferences?.find(({ kind, name }) => kind === "Node" && name === nodeName);
  return hasLabel(metadata) && owner?.controller === true;
}

function hasLabel({ labels }: ObjectMeta): boolean {
  return Object.entries(managedByLabel).every(([key, value]) => labels?.[key] === value);
}

// Who wrote which field is as large as the devices, and not needed.
function lean({ managedFields, ...metadata }: ObjectMeta): ObjectMeta {
  return metadata;
}

/** Whether a refusal is because the object is not there any more, or has changed. */
export function isStale(error: unknown): boolean {
  const code = codeOf(error);
  return code === "conflict" || code === "notFound";
}
