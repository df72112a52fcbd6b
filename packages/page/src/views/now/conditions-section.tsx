import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { conditionTaintsText, nodeTaintText, shownTaints } from "@nodekeeper/api/wording";
import { exportedTime, useExport } from "../../export/exports.ts";
import { breakable } from "../../parts/breakable.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { PluginLink } from "../../parts/plugin-links.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { Age, Countdown, Time } from "../../parts/time.tsx";
import { age, shown } from "../../text.ts";

type Conditions = ApiAnswers["eviction/node"];
type Condition = Conditions["conditions"][number];

const MOST_EVENTS = 20;

/** Conditions and taints set on the node by eviction: by which plugin, since when, until when. */
export function ConditionsSection({ conditions: known }: { conditions: Conditions | undefined }) {
  useExport(known && "Taints", () =>
    (known?.taints ?? []).map((taint) => ({
      Taint: shown(taint.taint),
      About: shown(nodeTaintText(taint, known!), 700),
    })),
  );
  useExport(known && "What was set and cleared lately", () =>
    eventsOf(known).map(({ at, message }) => ({ Time: exportedTime(at), Event: shown(message, 1_000) })),
  );
  if (!known)
    return (
      <Section title="Conditions and taints">
        <Waiting>Waiting for the first round.</Waiting>
      </Section>
    );
  const events = eventsOf(known);
  const taints = shownTaints(known);
  return (
    <Section title="Conditions and taints">
      {known.conditions.length === 0 ? (
        <p>None is set by Nodekeeper.</p>
      ) : (
        <Table
          label="Conditions and taints set by Nodekeeper"
          columns={["Condition", "Taints", "Owner", "Why", "Since", "Until"]}
          rows={known.conditions.map((condition) => ({
            key: `${condition.target} ${condition.name} ${condition.plugin}`,
            class: condition.isMet ? "failed" : "warning",
            cells: cellsOf(condition, known.transitionMs),
          }))}
        />
      )}
      {taints.length > 0 && (
        <ul>
          {taints.map((taint) => (
            <li key={taint.taint}>{shown(nodeTaintText(taint, known), 700)}</li>
          ))}
        </ul>
      )}
      {events.length > 0 && (
        <details>
          <summary>What was set and cleared lately</summary>
          <ol class="now-events">
            {events.map(({ at, message }, index) => (
              <li key={index}>
                <Time at={at} /> <Prose text={message} />
              </li>
            ))}
          </ol>
        </details>
      )}
    </Section>
  );
}

function eventsOf(known: Conditions | undefined): Conditions["events"] {
  return (known?.events ?? []).slice(-MOST_EVENTS).reverse();
}

function cellsOf(condition: Condition, transitionMs: number | null) {
  const { name, target, plugin, cause, since } = condition;
  return [
    <>
      {shown(name)} <small>{target === "node" ? "Node" : "CustomNodeResource"}</small>
    </>,
    breakable(shown(conditionTaintsText(condition), 500)),
    <PluginLink name={plugin} />,
    shown(cause ?? "", 500),
    <Age since={since} />,
    <Until condition={condition} transitionMs={transitionMs} />,
  ];
}

function Until({ condition, transitionMs }: { condition: Condition; transitionMs: number | null }) {
  const { isMet, until, lastMet } = condition;
  if (isMet || until === null)
    return <>{transitionMs === null ? "a while" : age(transitionMs)} after it clears</>;
  return (
    <>
      <Countdown until={until} over="with the next round" /> unless it is reported again (last{" "}
      <Age since={lastMet} />)
    </>
  );
}
