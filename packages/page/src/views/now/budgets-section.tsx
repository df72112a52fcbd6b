import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { counted, refusalWord } from "@nodekeeper/api/wording";
import { Waiting } from "../../parts/notice.tsx";
import { Section } from "../../parts/section.tsx";
import { Table, type TableRow } from "../../parts/table.tsx";
import { Countdown } from "../../parts/time.tsx";
import { age, shown } from "../../text.ts";

type Budgets = ApiAnswers["eviction/budgets"];
type Candidates = ApiAnswers["eviction/candidates"];
type Use = Budgets["node"];

interface Props {
  budgets: Budgets | undefined;
  candidates: Candidates | undefined;
}

/** The limits of eviction, their usage, and the pods that cannot be evicted now or at all. */
export function BudgetsSection({ budgets, candidates }: Props) {
  if (!budgets)
    return (
      <Section title="Limits">
        <Waiting>Waiting for the first round.</Waiting>
      </Section>
    );
  const rows = [
    limitRow("node", "this node", budgets.node),
    ...budgets.namespaces
      .filter(isLimited)
      .map((one) => limitRow(`namespace ${one.namespace}`, `namespace ${shown(one.namespace)}`, one)),
    ...budgets.owners.filter(isLimited).map((one) => limitRow(`owner ${one.owner.uid}`, ownerText(one), one)),
  ];
  return (
    <Section title="Limits" remark={`evictions within ${age(budgets.windowMs)}; ${burstText(budgets.burst)}`}>
      <Table isNarrow label="Limits of evictions" columns={["Limit", "Used", "Next allowed"]} rows={rows} />
      {candidates && <Eligible candidates={candidates} />}
    </Section>
  );
}

function burstText(burst: number | null): string {
  if (burst === null) return "any number in a round";
  return burst === 0 ? "none in a round: eviction.burst is 0" : `at most ${burst} in a round`;
}

function isLimited({ limit }: Use): boolean {
  return limit !== null;
}

function limitRow(key: string, title: string, { limit, used, freeAt }: Use): TableRow {
  const isFull = limit !== null && used >= limit;
  return {
    key,
    class: isFull ? "warning" : undefined,
    cells: [
      title,
      <>
        {limit !== null && limit > 0 && (
          <meter min={0} max={limit} value={used} high={limit * 0.99} optimum={0} aria-hidden="true" />
        )}{" "}
        {limit === null ? `${used}, no limit` : `${used} of ${limit}`}
      </>,
      freeAt !== null ? <Countdown until={freeAt} /> : isFull ? "never: the limit is 0" : "now",
    ],
  };
}

function ownerText({ namespace, owner: { kind, name, uid } }: Budgets["owners"][number]): string {
  return name === "" ? `owner ${shown(uid)}` : `${shown(kind)} ${shown(namespace)}/${shown(name)}`;
}

function Eligible({ candidates: counts }: { candidates: Candidates }) {
  const { candidates, eligible, ineligible, excluded, pods } = counts;
  const [later, never] = [reasonsOf(ineligible), reasonsOf(excluded)];
  return (
    <>
      <p>
        {eligible} of {counted(pods, "pod")} can be evicted now
        {candidates > eligible && `, ${candidates - eligible} later`}
        {pods > candidates && `, ${pods - candidates} never`}.
      </p>
      {(later.length > 0 || never.length > 0) && (
        <dl class="now-reasons">
          {later.length > 0 && (
            <div>
              <dt>not now</dt>
              <dd>{later.join(", ")}</dd>
            </div>
          )}
          {never.length > 0 && (
            <div>
              <dt>never</dt>
              <dd>{never.join(", ")}</dd>
            </div>
          )}
        </dl>
      )}
    </>
  );
}

function reasonsOf(counts: Candidates["ineligible"]): string[] {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${count} (${refusalWord(reason)})`);
}
