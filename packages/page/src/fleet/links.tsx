import type { FoundPod } from "@nodekeeper/api/fleet";
import { addressOf } from "../address.ts";
import { shown } from "../text.ts";

/**
 * A link to the page of a node's agent. Opens in a separate tab, because that page has its own navigation.
 * @param view fragment of the page's address
 */
export function NodeLink({ node, view = "", text = node }: { node: string; view?: string; text?: string }) {
  return (
    <a href={`nodes/${encodeURIComponent(node)}/${view}`} target="_blank" rel="noopener noreferrer">
      {shown(text, 507)}
    </a>
  );
}

/** A link to a pod on the page of its node's agent. */
export function PodOnNode({ pod: { namespace, name, uid, node } }: { pod: FoundPod }) {
  const text = `${namespace}/${name}`;
  if (node === "") return <>{shown(text, 507)}</>;
  return <NodeLink node={node} view={addressOf("pod", [namespace, name], { uid })} text={text} />;
}
