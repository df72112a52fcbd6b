import { counted, type RoundLine, rankText, roundLines } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { useExport } from "../../export/exports.ts";
import { Problem } from "../../parts/notice.tsx";
import { Prose } from "../../parts/prose.tsx";
import { RankedPods } from "../../parts/ranked-pods.tsx";
import { RoundLink } from "../../parts/round-link.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import type { ExplainedRound } from "./story.ts";

/** A round from a pod's point of view: what was met, requested and decided, and the ranking. */
export function RoundFacts({ round }: { round: ExplainedRound }) {
  useExport(`Round ${round.id}`, () =>
    byLabel(roundLines(round)).flatMap(([label, texts]) =>
      texts.map((text) => ({ Fact: label, Value: shown(text, 1_000) })),
    ),
  );
  return (
    <>
      <dl class="pod-facts">
        {byLabel(roundLines(round)).map(([label, texts]) => (
          <div key={label}>
            <dt>{label}</dt>
            {texts.map((text) => (
              <dd key={text}>
                <Prose text={text} />
              </dd>
            ))}
          </div>
        ))}
      </dl>
      <RankingTable round={round} />
      <p>
        <RoundLink id={round.id}>The whole of round {round.id}</RoundLink>: readings, policy, and every
        candidate.
      </p>
    </>
  );
}

function byLabel(lines: readonly RoundLine[]): [string, string[]][] {
  return [...Map.groupBy(lines, ({ label }) => label)].map(([label, group]) => [
    label,
    [...new Set(group.map(({ text }) => text))],
  ]);
}

// Up to this many are loaded and shown without a request by the user.
const FEW_CANDIDATES = 30;

/** The ranking of a round: the pod and the other requested pods, or on request all candidates. */
function RankingTable({ round }: { round: ExplainedRound }) {
  const { place, others, candidates, id, ranking } = round;
  const [isWhole, setWhole] = useState(candidates <= FEW_CANDIDATES);
  const read = useAnswer("eviction/records", isWhole ? { after: id - 1, limit: 1 } : undefined);
  const record = read.value?.records.find((one) => one.id === id);
  if (!place) return null;
  const shownPods = record?.decision.ranking ?? [place, ...others].sort((a, b) => a.rank - b.rank);
  const isMissing = read.value !== undefined && !record;
  return (
    <>
      <h3>Ranking</h3>
      <p>
        <Prose text={`Rank ${rankText(round)}`} />
      </p>
      {shownPods.length > 1 && (
        <RankedPods pods={shownPods} ranking={ranking} record={record} about={place} />
      )}
      <p class="quiet">
        Of two requested pods, the one with the lower rank is evicted first. A plugin that names a pod, by its
        usage or a rule of its own, overrides it; forced evictions come before soft ones, and pods whose
        eviction failed lately come last.
      </p>
      {!isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {counted(candidates, "candidate")}
        </button>
      )}
      {read.problem && <Problem problem={read.problem} />}
      {isMissing && (
        <p class="quiet" role="status">
          The complete round is no longer recorded, or too large for a response.
        </p>
      )}
    </>
  );
}
