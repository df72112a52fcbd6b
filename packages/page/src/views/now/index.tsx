import { Waiting } from "../../parts/notice.tsx";
import type { ViewProps } from "../../view-props.ts";
import { BudgetsSection } from "./budgets-section.tsx";
import { ConditionsSection } from "./conditions-section.tsx";
import { EvictionsSection } from "./evictions-section.tsx";
import { HealthSection } from "./health-section.tsx";
import { ModePanel } from "./mode-panel.tsx";
import { QosSection } from "./qos-section.tsx";
import { ThresholdsSection } from "./thresholds-section.tsx";
import { UnderWaySection } from "./under-way-section.tsx";

/** `#/now`: whether pods are evicted, which thresholds are met, the resulting actions, and their limits. */
export function NowView({ live }: ViewProps) {
  const { node } = live;
  if (!node) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  const isOn = node.eviction !== null;
  return (
    <>
      <ModePanel node={node} />
      <HealthSection node={node} />
      {isOn && (
        <>
          <ThresholdsSection
            budgets={live["eviction/budgets"]}
            dryRunPlugins={node.eviction?.dryRunPlugins ?? []}
          />
          <ConditionsSection conditions={live["eviction/node"]} />
          <UnderWaySection budgets={live["eviction/budgets"]} />
          <EvictionsSection live={live} />
          <BudgetsSection budgets={live["eviction/budgets"]} candidates={live["eviction/candidates"]} />
          <QosSection candidates={live["eviction/candidates"]} />
        </>
      )}
    </>
  );
}
