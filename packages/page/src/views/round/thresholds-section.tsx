import { methodOf } from "@nodekeeper/api/wording";
import { useExport } from "../../export/exports.ts";
import { Badge } from "../../parts/badge.tsx";
import { PluginLink } from "../../parts/plugin-links.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { shown } from "../../text.ts";
import { type RoundRecord, readingsOf } from "./words.ts";

/** What each plugin reported against its threshold, the consequence, and the pods it requested by name. */
export function ThresholdsSection({ record }: { record: RoundRecord }) {
  const readings = readingsOf(record);
  const { failures } = record.decision;
  useExport(failures.length > 0 ? "Failed calls" : undefined, () =>
    failures.map(({ plugin, call, failure, late }) => ({
      Plugin: shown(plugin),
      Call: methodOf(call),
      Failure: shown(failure, 500),
      Late: late ?? false,
    })),
  );
  return (
    <Section title="Readings and thresholds">
      {readings.length === 0 ? (
        <p>No eviction plugin was connected.</p>
      ) : (
        <Table
          label="What the plugins reported"
          columns={["Plugin", "Observed", "Type", "What followed", "Requested by name"]}
          rows={readings.map((reading) => ({
            key: reading.plugin,
            class: classes[reading.type],
            cells: cellsOf(reading),
          }))}
        />
      )}
      {failures.length > 0 && (
        <>
          <h3>Failed calls</h3>
          <ul>
            {failures.map(({ plugin, call, failure, late }, index) => (
              <li key={index} class="failed">
                {late ? "late: " : ""}
                {methodOf(call)} of <PluginLink name={plugin} />: {shown(failure, 500)}
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

const classes = { hard: "failed", soft: "warning", "": undefined } as const;

function cellsOf({ plugin, observed, type, consequence, named }: ReturnType<typeof readingsOf>[number]) {
  return [
    <PluginLink name={plugin} />,
    shown(observed, 300),
    type && <Badge tone={type === "hard" ? "bad" : "warn"}>{type}</Badge>,
    <Prose text={consequence} />,
    named.pods > 0 && `${named.pods}, ${named.forced} of them forced`,
  ];
}
