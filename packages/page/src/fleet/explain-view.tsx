import type { Explained } from "@nodekeeper/api/fleet";
import { addressOf } from "../address.ts";
import { shown } from "../text.ts";
import type { FleetViewProps } from "./fleet-view-props.ts";
import { NodeLink } from "./links.tsx";
import { useAsked } from "./use-asked.ts";

/**
 * `#/explain?pod=&node=`: why a pod was evicted or kept, in the words of `explain pod`; without a node, all agents are
 * asked. `#/explain?node=`: the same of a node.
 */
export function ExplainView({ address: { query } }: FleetViewProps) {
  const [pod, node] = [query.get("pod") ?? "", query.get("node") ?? ""];
  const isNamed = pod !== "" || node !== "";
  const { value, problem } = useAsked<Explained>("explain", isNamed ? { pod, node } : undefined);
  if (!isNamed) return <p>The address names neither a pod nor a node.</p>;
  return (
    <div class="card">
      {pod !== "" && (
        <p>
          <a href={addressOf("pods", [], { text: pod })}>Search for {shown(pod, 120)}</a>
          {node !== "" && (
            <>
              {" · "}On its node: <NodeLink node={node} view={addressOf("pod", pod.split("/"))} />
            </>
          )}
        </p>
      )}
      {!value && problem === undefined && (
        <p role="status">
          {node === "" ? "Asking the agent of its node, or else all agents." : `Asking about ${shown(node)}.`}
        </p>
      )}
      {problem !== undefined && (
        <p class="lost" role="alert">
          {shown(problem, 2_000)}
          {pod !== "" && node !== "" && (
            <>
              {" "}
              <a href={addressOf("explain", [], { pod })}>Ask all agents</a>
            </>
          )}
        </p>
      )}
      {value && <pre class="explained">{value.text}</pre>}
    </div>
  );
}
