import type { ExplainedPod } from "@nodekeeper/api/fleet";
import { addressOf } from "../address.ts";
import { shown } from "../text.ts";
import type { FleetViewProps } from "./fleet-view-props.ts";
import { NodeLink } from "./links.tsx";
import { useAsked } from "./use-asked.ts";

/** `#/explain?pod=&node=`: why a pod was evicted or kept, in the words of `explain pod`. Without a node, all agents are asked. */
export function ExplainView({ address: { query } }: FleetViewProps) {
  const pod = query.get("pod") ?? "";
  const node = query.get("node") ?? "";
  const { value, problem } = useAsked<ExplainedPod>("explain", pod === "" ? undefined : { pod, node });
  if (pod === "") return <p>The address names no pod.</p>;
  return (
    <div class="card">
      <p>
        <a href={addressOf("pods", [], { text: pod })}>Search for {shown(pod, 120)}</a>
        {node !== "" && (
          <>
            {" · "}On its node: <NodeLink node={node} view={addressOf("pod", pod.split("/"))} text={node} />
          </>
        )}
      </p>
      {!value && problem === undefined && (
        <p role="status">
          {node === ""
            ? "Asking the agent of its node, or else all agents."
            : `Asking the agent on ${shown(node)}.`}
        </p>
      )}
      {problem !== undefined && (
        <p class="lost" role="alert">
          {shown(problem, 2_000)}
          {node !== "" && (
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
