import { plainText } from "@nodekeeper/api/text";
import { NodekeeperError } from "@nodekeeper/core/lib";

/** A pod as the user names it: by namespace and name, or by UID. */
export type PodName = { readonly namespace: string; readonly name: string } | { readonly uid: string };

// Assigned by the API server, or by the kubelet from the manifest of a static pod.
const uid = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/**
 * Parses "[NAMESPACE/]POD" or a pod's UID. Throws `invalid` for anything else.
 * @param namespace namespace of a pod named without one
 */
export function parsePodName(text: string, namespace: string): PodName {
  if (uid.test(text)) return { uid: text };
  const parts = text.split("/");
  const [first = "", second] = parts;
  if (parts.length > 2 || parts.includes(""))
    throw new NodekeeperError("invalid", `invalid pod "${text}": expected [NAMESPACE/]NAME or a UID`);
  return second === undefined ? { namespace, name: first } : { namespace: first, name: second };
}

/** "default/web", or the UID. */
export function podText(pod: PodName): string {
  return "uid" in pod ? pod.uid : `${pod.namespace}/${pod.name}`;
}

/** Selects pods. Omitted fields match all. */
export interface PodSelector {
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** "pod default/web", "pods in namespace default", or "pods" if all are selected. */
export function selectorText({ namespace, name, uid }: PodSelector): string {
  if (uid !== undefined) return `pod with the UID ${plainText(uid)}`;
  if (name !== undefined) return plainText(`pod ${namespace}/${name}`, 600);
  return namespace === undefined ? "pods" : `pods in namespace ${plainText(namespace)}`;
}
