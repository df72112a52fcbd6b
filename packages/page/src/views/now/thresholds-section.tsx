import { isDryRun, thresholdText } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { whyNoPodText } from "@nodekeeper/api/wording";
import { Badge } from "../../parts/badge.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { PluginLink } from "../../parts/plugin-links.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { useKnownTicking } from "../../parts/ticker.ts";
import { Age, Countdown, Duration } from "../../parts/time.tsx";
import { shown } from "../../text.ts";

type Budgets = ApiAnswers["eviction/budgets"];
type Threshold = Budgets["thresholds"][number];

interface Props {
  budgets: Budgets | undefined;
  /** Plugins whose requests are only recorded; "*" for all, "-name" for an exception. */
  dryRunPlugins: readonly string[];
}

/** Met thresholds, since when, and what their evictions wait for. */
export function ThresholdsSection({ budgets, dryRunPlugins }: Props) {
  return (
    <Section
      title="Thresholds met"
      remark={
        budgets?.at != null && (
          <>
            in the round <Age since={budgets.at} />
          </>
        )
      }
    >
      {budgets?.at == null ? (
        <Waiting>Waiting for the first round.</Waiting>
      ) : budgets.thresholds.length === 0 ? (
        <p>None. No plugin reports pressure.</p>
      ) : (
        <Table
          label="Thresholds that are met"
          columns={["Plugin", "Observed", "Type", "Met for", "What happens"]}
          rows={budgets.thresholds.map((threshold) => ({
            key: `${threshold.plugin} ${threshold.scope}`,
            class: threshold.metType === "hard" ? "failed" : "warning",
            cells: cellsOf(threshold, isDryRun({ dryRunPlugins }, threshold.plugin)),
          }))}
        />
      )}
    </Section>
  );
}

function cellsOf(threshold: Threshold, isDry: boolean) {
  const { plugin, scope, metType, since } = threshold;
  return [
    <PluginLink name={plugin} />,
    shown(thresholdText(scope, threshold)),
    <Badge tone={metType === "hard" ? "bad" : "warn"}>{metType}</Badge>,
    <Duration since={since} />,
    isDry ? "dry run: only recorded" : <Consequence threshold={threshold} />,
  ];
}

function Consequence({ threshold }: { threshold: Threshold }) {
  const { confirmed, since, gracePeriodSeconds } = threshold;
  const why = useKnownTicking((now) => whyNoPodText(threshold, now) ?? "pods are selected");
  if (!confirmed)
    return (
      <>
        counts <Countdown until={since + gracePeriodSeconds * 1_000} />, when its grace period is over
      </>
    );
  return <Prose text={why} />;
}
