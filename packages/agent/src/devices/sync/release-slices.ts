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
 * Deletes the ResourceSlices that the agent published for a node or, without a node name, for pools beyond the nodes.
 * Does not delete slices of other clients. Yields the name of each slice after its deletion; in a dry run, without
 * deleting it. Yields nothing if the API server does not serve ResourceSlices. Idempotent.
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
