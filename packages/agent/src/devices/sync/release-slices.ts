import type { KubeApiClient } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";
import { discoverSliceApi, fieldSelectorOf, knownSlice } from "./slice-api.ts";

export interface SliceReleaseOptions {
  client: KubeApiClient;
  /** Undefined for the slices of pools beyond the nodes, of all drivers. */
  nodeName: string | undefined;
  /** Whether to write nothing. */
  isDryRun: boolean;
  signal: AbortSignal;
}

/**
 * Deletes ResourceSlices of a node that the agent published; without a node, those of pools beyond the nodes.
 * Other clients' slices stay. Yields each name once deleted; none without ResourceSlices. Idempotent.
 */
export async function* releaseSlices(options: SliceReleaseOptions): AsyncGenerator<string, void> {
  const { client, nodeName, isDryRun, signal } = options;
  const api = await discoverSliceApi(client, signal).catch((error) => {
    if (codeOf(error) === "unsupported") return undefined;
    throw error;
  });
  if (!api || (api.version === "v1alpha2" && nodeName === undefined)) return;
  const { items } = await client.list(api.resource, {
    fieldSelector: fieldSelectorOf(api, { nodeName, driver: undefined }),
    signal,
  });
  const own = items.filter((item) => knownSlice(api, item, nodeName)?.object !== undefined);
  for (const { metadata } of own) {
    const { name = "", uid = "" } = metadata;
    if (!isDryRun)
      await client.delete(api.resource, name, { preconditions: { uid }, signal }).catch((error) => {
        if (codeOf(error) !== "notFound") throw error;
      });
    yield name;
  }
}
