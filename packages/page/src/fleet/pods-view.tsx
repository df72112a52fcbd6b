import type { FoundPod, FoundPods } from "@nodekeeper/api/fleet";
import { counted } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { addressOf, goTo } from "../address.ts";
import { Badge, type Tone } from "../parts/badge.tsx";
import { Table } from "../parts/table.tsx";
import { Age } from "../parts/time.tsx";
import { shown } from "../text.ts";
import type { FleetViewProps } from "./fleet-view-props.ts";
import { NodeLink, PodOnNode } from "./links.tsx";
import { useAsked } from "./use-asked.ts";

// Two names of 253 characters and a slash.
const LONGEST_TEXT = 507;

/** `#/pods?text=`: pods of the cluster by a part of their name, or by UID. */
export function PodsView({ address: { query } }: FleetViewProps) {
  const text = query.get("text") ?? "";
  const { value, problem } = useAsked<FoundPods>("pods", text === "" ? undefined : { text });
  return (
    <div class="card">
      <PodForm key={text} text={text} />
      <p class="quiet" role="status">
        {text !== "" && !value && !problem && "Searching the pods of the cluster."}
        {value && foundText(value)}
      </p>
      {problem !== undefined && (
        <p class="lost" role="alert">
          The pods can't be listed: {shown(problem, 600)}.
        </p>
      )}
      {value && value.items.length > 0 && (
        <Table
          label="Pods"
          columns={["Pod", "State", "Node", "Owner", "Created", "Why"]}
          rows={value.items.map((pod) => ({ key: pod.uid, cells: cellsOf(pod) }))}
        />
      )}
      {value && (
        <p>
          Deleted?{" "}
          <a href={addressOf("explain", [], { pod: text })}>Ask all agents about {shown(text, 120)}</a>, by
          its whole name or its UID.
        </p>
      )}
    </div>
  );
}

function PodForm({ text }: { text: string }) {
  const [typed, setTyped] = useState(text);
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          goTo(addressOf("pods", [], { text: typed.trim() || undefined }));
        }}
      >
        <label>
          Find a pod of the cluster by a part of its name, or by its UID
          <input
            type="search"
            value={typed}
            maxLength={LONGEST_TEXT}
            placeholder="default/web"
            onInput={({ currentTarget: { value } }) => setTyped(value)}
          />
        </label>
        <p>
          <button type="submit">Search</button>
        </p>
      </form>
    </search>
  );
}

const phaseTones: Readonly<Record<string, Tone>> = { Running: "ok", Pending: "warn", Failed: "bad" };

function cellsOf(pod: FoundPod) {
  const { namespace, name, node, phase, owner, createdAt } = pod;
  return [
    <PodOnNode pod={pod} />,
    <Badge tone={phaseTones[phase] ?? "quiet"}>{shown(phase, 40)}</Badge>,
    node === "" ? "not scheduled" : <NodeLink node={node} />,
    shown(owner ?? "", 120),
    createdAt !== undefined && <Age since={createdAt} />,
    <a href={addressOf("explain", [], { pod: `${namespace}/${name}`, node: node || undefined })}>
      Explain<span class="unseen"> {shown(name)}</span>
    </a>,
  ];
}

function foundText({ items, searched, hasMore, namespace }: FoundPods): string {
  const where =
    namespace === undefined ? "" : ` of the namespace ${shown(namespace)}, the only one that you may list`;
  if (hasMore) return `The first ${items.length}; write more of the name to see others.`;
  if (items.length === 0) return `None of the ${counted(searched, "pod")}${where} has such a name or UID.`;
  return `${counted(items.length, "pod")} among ${searched}${where}.`;
}
