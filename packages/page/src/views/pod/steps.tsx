import { timelineOf } from "../../../../agent/src/eviction/wording/index.ts";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import type { Explanation } from "./story.ts";

/** What happened to the pod, each step with its offset from its selection. */
export function Steps({ explanation }: { explanation: Explanation }) {
  const steps = timelineOf(explanation);
  if (steps.length === 0) return null;
  return (
    <Section title="What happened">
      <Table
        label="What happened to the pod"
        columns={["Time", "Offset", "Step"]}
        rows={steps.map(({ at, offset, message }, index) => ({
          key: index,
          cells: [<Time at={at} />, <span class="offset">{offset}</span>, <Prose text={message} />],
        }))}
      />
    </Section>
  );
}
