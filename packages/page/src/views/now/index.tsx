import { Waiting } from "../../parts/notice.tsx";
import type { ViewProps } from "../../view-props.ts";
import { AnswersSection } from "./answers-section.tsx";
import { BudgetsSection } from "./budgets-section.tsx";
import { ConditionsSection } from "./conditions-section.tsx";
import { EvictionsSection, useEvictions } from "./evictions-section.tsx";
import { HealthSection } from "./health-section.tsx";
import { ModePanel } from "./mode-panel.tsx";
import { QosSection } from "./qos-section.tsx";
import { SignalsSection } from "./signals-section.tsx";
import { ThresholdsSection } from "./thresholds-section.tsx";
import { UnderWaySection } from "./under-way-section.tsx";

/** `#/now`: a summary of problems, recent actions and pending ones, followed by the details. */
export function NowView({ live }: ViewProps) {
  const { node } = live;
  const evictions = useEvictions(live);
  if (!node) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  const budgets = live["eviction/budgets"];
  // Before the first round, the agent may not know the node's pods.
  const candidates = budgets?.at == null ? undefined : live["eviction/candidates"];
  if (!node.eviction)
    return (
      <>
        <AnswersSection live={live} evictions={undefined} />
        <HealthSection node={node} />
        <ModePanel node={node} />
      </>
    );
  return (
    <>
      <AnswersSection live={live} evictions={evictions.lastHour} />
      <div class="columns">
        <div class="stack">
          <ThresholdsSection budgets={budgets} dryRunPlugins={node.eviction.dryRunPlugins} />
          <UnderWaySection budgets={budgets} />
          <EvictionsSection live={live} {...evictions} />
        </div>
        <div class="stack">
          <ConditionsSection conditions={live["eviction/node"]} />
          <BudgetsSection budgets={budgets} candidates={candidates} />
        </div>
        <div class="stack">
          <HealthSection node={node} />
          <ModePanel node={node} />
          <QosSection candidates={candidates} />
        </div>
      </div>
      <SignalsSection />
    </>
  );
}
