import { Badge } from "../../parts/badge.tsx";
import { Joined } from "../../parts/joined.tsx";
import { PluginLinks } from "../../parts/plugin-links.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { shown } from "../../text.ts";
import { decidedPods, type RoundRecord } from "./words.ts";

/** Selected pods, withdrawn or ended evictions, and the conditions and taints that are set. */
export function DecidedSection({ record }: { record: RoundRecord }) {
  const pods = decidedPods(record);
  const { conditions, taints } = record.decision;
  return (
    <Section title="Decided">
      {pods.length === 0 && <p>Nothing about any pod.</p>}
      {pods.length > 0 && (
        <Table
          label="Pods about which something was decided"
          columns={["Pod", "Decision", "Requested by", "Why"]}
          rows={pods.map(({ pod, what, plugins, why, tone }, index) => ({
            // Several plugins may have notified the same pod.
            key: `${index} ${pod.uid}`,
            cells: [
              <PodLink {...pod} />,
              <Badge tone={tone}>{what}</Badge>,
              plugins.length > 0 && <PluginLinks names={plugins} />,
              <Prose text={why} longest={500} />,
            ],
          }))}
        />
      )}
      {conditions.length > 0 && (
        <p>
          Conditions in force:{" "}
          <Joined
            by="; "
            items={conditions.map(({ name, plugins, why }) => (
              <>
                <b>{shown(name)}</b> (<PluginLinks names={plugins} />: {shown(why, 300)})
              </>
            ))}
          />
          . Taints:{" "}
          {[...taints.node, ...taints.customNodeResource]
            .map(({ key, effect }) => shown(`${key}:${effect}`))
            .join(", ") || "none"}
          .
        </p>
      )}
    </Section>
  );
}
