import { thresholdText } from "@nodekeeper/api/decide";
import { methodOf } from "@nodekeeper/api/wording";
import { Badge } from "../../parts/badge.tsx";
import { PluginLink } from "../../parts/plugin-links.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { shown } from "../../text.ts";
import { consequenceOf, type RoundRecord } from "./words.ts";

type Answers = RoundRecord["input"]["plugins"][number];

/** What each plugin reported against its threshold, the consequence, and the pods it requested by name. */
export function ThresholdsSection({ record }: { record: RoundRecord }) {
  const { plugins } = record.input;
  return (
    <Section title="Readings and thresholds">
      {plugins.length === 0 ? (
        <p>No eviction plugin was connected.</p>
      ) : (
        <Table
          label="What the plugins reported"
          columns={["Plugin", "Observed", "Type", "What followed", "Requested by name"]}
          rows={plugins.map((answers) => ({
            key: answers.plugin,
            class: classOf(answers),
            cells: cellsOf(answers, record),
          }))}
        />
      )}
      {record.decision.failures.length > 0 && (
        <>
          <h3>Failed calls</h3>
          <ul>
            {record.decision.failures.map(({ plugin, call, failure, late }, index) => (
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

function classOf({ threshold }: Answers): string | undefined {
  if (!("answer" in threshold)) return undefined;
  const { metType } = threshold.answer;
  return metType === "hard" ? "failed" : metType === "soft" ? "warning" : undefined;
}

function cellsOf({ plugin, threshold, evictPods }: Answers, { input, decision }: RoundRecord) {
  const link = <PluginLink name={plugin} />;
  const pods = "answer" in evictPods ? evictPods.answer.pods : [];
  const named =
    pods.length > 0 && `${pods.length}, ${pods.filter(({ force }) => force).length} of them forced`;
  if (!("answer" in threshold)) return [link, "no answer", undefined, "see the failed calls", named];
  const { scope, metType, observedValue } = threshold.answer;
  const met = decision.thresholds.find((one) => one.plugin === plugin && one.scope === scope);
  return [
    link,
    observedValue === null && metType === "none"
      ? "no value reported"
      : shown(thresholdText(scope, threshold.answer), 300),
    metType === "none" ? undefined : <Badge tone={metType === "hard" ? "bad" : "warn"}>{metType}</Badge>,
    metType === "none" ? "not met" : <Prose text={consequenceOf(met, input.now)} />,
    named,
  ];
}
