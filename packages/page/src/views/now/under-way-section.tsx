import type { BudgetStatus, PodReference } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { refusalWord } from "@nodekeeper/api/wording";
import type { ComponentChildren } from "preact";
import { Badge } from "../../parts/badge.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Section } from "../../parts/section.tsx";
import { Table, type TableRow } from "../../parts/table.tsx";
import { Age, Countdown } from "../../parts/time.tsx";
import { shown } from "../../text.ts";

type Budgets = ApiAnswers["eviction/budgets"];

/** Unfinished evictions: in progress, queued, on hold for a limit, and failed ones that are retried. */
export function UnderWaySection({ budgets }: { budgets: Budgets | undefined }) {
  if (!budgets) return null;
  const rows = [
    ...budgets.pending.map(pendingRow),
    ...budgets.queued.map((pod) => queuedRow(pod, budgets.burst)),
    ...budgets.limited.map(limitedRow),
    ...budgets.paused.map(pausedRow),
  ];
  return (
    <Section title="Evictions in progress" remark={rows.length === 0 ? "" : String(rows.length)}>
      {rows.length === 0 ? (
        <p>None is in progress, queued, on hold, or to be retried.</p>
      ) : (
        <Table label="Evictions in progress" columns={["Pod", "State", "Since", "Next", "Why"]} rows={rows} />
      )}
    </Section>
  );
}

const stages: Readonly<Record<Budgets["pending"][number]["stage"], string>> = {
  sending: "being sent",
  terminating: "terminating",
  stopping: "containers stopping",
  interrupted: "interrupted by a restart",
};

function row(list: string, pod: PodReference, cells: readonly ComponentChildren[]): TableRow {
  return { key: `${list} ${pod.uid}`, cells: [<PodLink {...pod} />, ...cells] };
}

function pendingRow(pod: Budgets["pending"][number]): TableRow {
  const { plugin, reason, since, stage, deadline } = pod;
  return row("pending", pod, [
    <Badge tone="warn">{stages[stage]}</Badge>,
    <Age since={since} />,
    deadline === null ? (
      "waits for the API server"
    ) : (
      <>
        overdue <Countdown until={deadline} over="now: not ended yet" />
      </>
    ),
    `${shown(plugin)}: ${shown(reason, 300)}`,
  ]);
}

function queuedRow(pod: Budgets["queued"][number], burst: number | null): TableRow {
  return row("queued", pod, [
    <Badge>queued</Badge>,
    <Age since={pod.since} />,
    burst === 0 ? "not while eviction.burst is 0" : "in the next round, if it is still requested",
    "the burst limit of its round was reached",
  ]);
}

function limitedRow(pod: Budgets["limited"][number]): TableRow {
  const { plugin, reason, until } = pod;
  return row("limited", pod, [
    <Badge tone="warn">on hold: {refusalWord(reason)}</Badge>,
    undefined,
    until === null ? (
      "never: the limit is 0"
    ) : (
      <>
        allowed <Countdown until={until} over="in the next round, if it is still requested" />
      </>
    ),
    `requested by ${shown(plugin)}`,
  ]);
}

function pausedRow(pod: Budgets["paused"][number]): TableRow {
  const { until, reason, budget } = pod;
  return row("paused", pod, [
    <Badge tone="warn">failed, retried later</Badge>,
    undefined,
    <>
      may be tried again <Countdown until={until} over="in the next round" />
    </>,
    budget ? budgetText(budget) : shown(reason, 300),
  ]);
}

function budgetText({ name, currentHealthy, desiredHealthy }: BudgetStatus): string {
  const counts =
    currentHealthy === null || desiredHealthy === null
      ? ""
      : `: ${currentHealthy} healthy, ${desiredHealthy} must stay`;
  return `refused by PodDisruptionBudget ${name === null ? "(name not known)" : shown(name)}${counts}`;
}
