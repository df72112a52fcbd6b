import type { ApiResource, KubeApiClient, KubeObject, ObjectMeta } from "../kube/index.ts";
import { codeOf, NodekeeperError } from "../lib/index.ts";
import { Canonical } from "./canonical.ts";
import type { StoredSlice } from "./checked.ts";
import { type StoredModel, storedModel } from "./plan-models.ts";
import { type SliceVersion, sliceVersions, storedSlice } from "./versions.ts";

export const group = "resource.k8s.io";
const kind = "ResourceSlice";
/** By this label the agent knows the slices that it published: drivers may publish others by themselves. */
export const managedByLabel = { "app.kubernetes.io/managed-by": "nodekeeper" } as const;

/** The version of ResourceSlices that is spoken with the server. */
export interface SliceApi {
  version: SliceVersion | "v1alpha2";
  resource: ApiResource;
}

/** A slice as the agent remembers it. */
export type KnownSlice = { uid: string; driver: string; object: StoredSlice | StoredModel };

/** The best version that the server has; throws `unsupported` where it has none. */
export async function discoverSliceApi(client: KubeApiClient, signal: AbortSignal): Promise<SliceApi> {
  for (const version of [...sliceVersions, "v1alpha2"] as const) {
    const resource = await client.resolve({ group, version, kind }, { signal });
    if (resource) return { version, resource };
  }
  throw new NodekeeperError(
    "unsupported",
    `the API server serves no ${kind} of ${group}: dynamic resource allocation is off, or it is older than 1.30`,
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
  canonical = new Canonical(),
): KnownSlice | undefined {
  const { uid } = object.metadata;
  if (!uid) return undefined;
  const stored =
    version === "v1alpha2" ? storedModel(object, canonical) : storedSlice(version, object, canonical);
  return { uid, driver: stored.driver, object: { ...stored, metadata: lean(stored.metadata) } };
}

// Who wrote which field is as large as the devices, and nobody asks.
function lean({ managedFields, ...metadata }: ObjectMeta): ObjectMeta {
  return metadata;
}

/** Whether a refusal says that what was meant is there no more, or not as it was. */
export function isStale(error: unknown): boolean {
  const code = codeOf(error);
  return code === "conflict" || code === "notFound";
}
