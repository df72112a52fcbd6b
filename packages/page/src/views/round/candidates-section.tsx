import { counted, reasonText } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { RankedPods } from "../../parts/ranked-pods.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import type { RoundRecord } from "./words.ts";

const MOST_AT_FIRST = 50;

/** All candidates by rank with their outcomes, and the excluded pods. */
export function CandidatesSection({ record }: { record: RoundRecord }) {
  const [isWhole, setWhole] = useState(false);
  const { ranking, exclusions } = record.decision;
  const keys = record.input.policy.ranking;
  const listed = isWhole ? ranking : ranking.slice(0, MOST_AT_FIRST);
  return (
    <Section title="Candidates" remark={`${counted(ranking.length, "pod")}, 1 is evicted first`}>
      {ranking.length === 0 && <p>No pod of the node could be evicted.</p>}
      {ranking.length > 0 && <RankedPods pods={listed} ranking={keys} record={record} />}
      {listed.length < ranking.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {counted(ranking.length, "candidate")}
        </button>
      )}
      {exclusions.length > 0 && <Exclusions exclusions={exclusions} />}
    </Section>
  );
}

// Rendered only while open, because there may be many.
function Exclusions({ exclusions }: { exclusions: RoundRecord["decision"]["exclusions"] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{counted(exclusions.length, "pod")} that are never evicted, or not now</summary>
      {isOpen && (
        <Table
          label="Pods that were not candidates"
          columns={["Pod", "Why it was not a candidate"]}
          rows={exclusions.map((one) => ({
            key: one.uid,
            cells: [<PodLink {...one} />, <Prose text={reasonText(one.reason, one.detail)} longest={300} />],
          }))}
        />
      )}
    </details>
  );
}
