import type { FoundPod, FoundPods } from "@nodekeeper/api/fleet";
import { codeOf } from "@nodekeeper/core/lib";
import type { Kubectl } from "../kubectl.ts";

const PAGE_PODS = 500;
const MOST_FOUND = 100;
// 100,000 pods.
const MOST_PAGES = 200;

interface PodPage {
  metadata: { continue?: string };
  items: {
    metadata: {
      namespace: string;
      name: string;
      uid: string;
      creationTimestamp?: string;
      ownerReferences?: { kind: string; name: string; controller?: boolean }[];
    };
    spec?: { nodeName?: string };
    status?: { phase?: string };
  }[];
}

/**
 * Returns up to 100 pods found by UID or by a part of "namespace/name". Lists pods in pages, because the pods of a
 * cluster may not fit in memory, and searches at most 100,000 pods. Throws as `Kubectl.run`.
 * @param namespaceWithoutRights the namespace that is searched if the user may not list the pods of all namespaces
 */
export async function searchPods(
  kubectl: Kubectl,
  text: string,
  namespaceWithoutRights: () => Promise<string>,
  signal: AbortSignal,
): Promise<FoundPods> {
  // The whole name of a namespace.
  const [, own] = /^([^/]+)\//.exec(text) ?? [];
  try {
    return await searchIn(kubectl, own, text, signal);
  } catch (error) {
    if (codeOf(error) !== "forbidden" || own !== undefined) throw error;
    const namespace = await namespaceWithoutRights();
    return { ...(await searchIn(kubectl, namespace, text, signal)), namespace };
  }
}

async function searchIn(
  kubectl: Kubectl,
  namespace: string | undefined,
  text: string,
  signal: AbortSignal,
): Promise<FoundPods> {
  const path =
    namespace === undefined ? "/api/v1/pods" : `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const items: FoundPod[] = [];
  let searched = 0;
  let token: string | undefined = "";
  for (let page = 0; token !== undefined && page < MOST_PAGES && items.length <= MOST_FOUND; page++) {
    signal.throwIfAborted();
    const query = `limit=${PAGE_PODS}${token === "" ? "" : `&continue=${encodeURIComponent(token)}`}`;
    const answer = JSON.parse(await kubectl.run(["get", "--raw", `${path}?${query}`])) as PodPage;
    searched += answer.items.length;
    const found = answer.items
      .map(podOf)
      .filter((pod) => pod.uid === text || `${pod.namespace}/${pod.name}`.includes(text));
    items.push(...found);
    token = answer.metadata.continue || undefined;
  }
  return {
    items: items.slice(0, MOST_FOUND),
    searched,
    hasMore: token !== undefined || items.length > MOST_FOUND,
  };
}

function podOf({ metadata, spec, status }: PodPage["items"][number]): FoundPod {
  const { namespace, name, uid, creationTimestamp, ownerReferences = [] } = metadata;
  const owner = ownerReferences.find(({ controller }) => controller);
  const createdAt = Date.parse(creationTimestamp ?? "");
  return {
    ...{ namespace, name, uid },
    node: spec?.nodeName ?? "",
    phase: status?.phase ?? "Unknown",
    ...(owner ? { owner: `${owner.kind} ${owner.name}` } : {}),
    ...(Number.isNaN(createdAt) ? {} : { createdAt }),
  };
}
