import { type Fact, Facts } from "../../../parts/facts.tsx";
import { PluginLinks } from "../../../parts/plugin-links.tsx";
import { PodLinks } from "../../../parts/pod-links.tsx";
import { shown } from "../../../text.ts";
import type { TreeNode } from "./tree-node.ts";

/** The selected row of the tree: its value as it is in the object, who holds it, who reports it. */
export function NodeDetails({
  node: { label, value, facts = [], pods = [], plugins = [], objectPlugins = [], more },
}: {
  node: TreeNode;
}) {
  const all: Fact[] = [
    ...(value === "" || facts.some(([, text]) => text === value)
      ? []
      : [["Value", shown(value, 1_000)] as const]),
    ...facts.map(([what, text]) => [shown(what, 120), shown(text, 2_000)] as const),
    ...(pods.length > 0 ? [["Held by", <PodLinks names={pods} />] as const] : []),
    ...(plugins.length > 0 ? [["Reported by", <PluginLinks names={plugins} />] as const] : []),
    ...(objectPlugins.length > 0
      ? [["Object reported by", <PluginLinks names={objectPlugins} />] as const]
      : []),
  ];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls on a narrow screen, also by the keyboard
    <section class="card tree-details" aria-label={`Selected: ${shown(label, 200)}`} tabIndex={0}>
      <h2>{shown(label, 200)}</h2>
      <Facts facts={all} exportedAs={`Selected: ${shown(label, 200)}`} />
      {more && (
        <p>
          <a href={more[0]}>{more[1]}</a>
        </p>
      )}
    </section>
  );
}
