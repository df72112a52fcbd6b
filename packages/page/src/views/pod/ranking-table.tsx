import { useState } from "preact/hooks";
import { candidateOutcomes, counted, rankText } from "../../../../agent/src/eviction/wording/index.ts";
import type { ApiAnswers } from "../../api.ts";
import { Problem } from "../../parts/notice.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Table } from "../../parts/table.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import { Comparison } from "./comparison.tsx";
import { namedBy } from "./named-by.ts";
import type { ExplainedRound } from "./story.ts";

// So many are read and shown without being asked for.
const FEW_CANDIDATES = 30;

type Ranked = NonNullable<ExplainedRound["place"]>;
type RoundRecord = ApiAnswers["eviction/records"]["records"][number];

/** The ranking of a round: the pod and the others that were requested; all candidates when that is wanted. */
export function RankingTable({ round }: { round: ExplainedRound }) {
  const { place, others, candidates, id } = round;
  const [isWhole, setWhole] = useState(candidates <= FEW_CANDIDATES);
  const [opened, setOpened] = useState<string>();
  const read = useAnswer("eviction/records", isWhole ? { after: id - 1, limit: 1 } : undefined);
  const record = read.value?.records.find((one) => one.id === id);
  if (!place) return null;
  const shownPods: readonly Ranked[] =
    record?.decision.ranking ?? [place, ...others].sort((a, b) => a.rank - b.rank);
  const isMissing = read.value !== undefined && !record;
  return (
    <>
      <h3>Ranking</h3>
      <p>
        <Prose text={`Rank ${rankText(round)}`} />
      </p>
      {shownPods.length > 1 && (
        <Table
          label="Candidates by rank; 1 is evicted first"
          columns={["Pod", "Rank", "QoS level", "QoS class", "Priority", "Outcome", "Why", "Compare"]}
          rows={shownPods.map((one) => ({
            key: one.uid,
            class: one.uid === place.uid ? "pod-this" : undefined,
            cells: cellsOf(one, place, record, {
              isOpen: opened === one.uid,
              onOpen: () => setOpened(opened === one.uid ? undefined : one.uid),
            }),
            below: opened === one.uid && <Comparison a={place} b={one} />,
          }))}
        />
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
          The whole round is not recorded any more, or too large for an answer.
        </p>
      )}
    </>
  );
}

function cellsOf(
  one: Ranked,
  place: Ranked,
  record: RoundRecord | undefined,
  { isOpen, onOpen }: { isOpen: boolean; onOpen(): void },
) {
  const isIt = one.uid === place.uid;
  const named = record ? namedBy(record, one.uid) : [];
  return [
    isIt ? <b>{shown(`${one.namespace}/${one.name}`)} (this pod)</b> : <PodLink {...one} />,
    one.rank,
    one.qosLevel,
    one.qosClass,
    one.priority,
    candidateOutcomes[one.outcome],
    <>
      <Prose text={one.why} longest={300} />
      {named.length > 0 && <div class="quiet">{shown(named.join("; "), 500)}</div>}
    </>,
    isIt ? (
      "–"
    ) : (
      <button type="button" aria-expanded={isOpen} onClick={onOpen}>
        {isOpen ? "Close" : "Compare"}
        <span class="unseen">{` ${isOpen ? "the comparison with" : "with"} ${shown(one.name, 80)}`}</span>
      </button>
    ),
  ];
}
