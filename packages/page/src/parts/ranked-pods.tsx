import type { RankKeyName } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Neighbour } from "@nodekeeper/api/records";
import { candidateOutcomes } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { podName, shown } from "../text.ts";
import { Comparison } from "./comparison.tsx";
import { Name } from "./name.tsx";
import { namedBy } from "./named-by.ts";
import { PodLink } from "./pod-link.tsx";
import { Prose } from "./prose.tsx";
import { Table } from "./table.tsx";

interface Props {
  pods: readonly Neighbour[];
  /** The ranking keys of the round's policy, by which pods are compared. */
  ranking: readonly RankKeyName[];
  /** Shows which plugins named which pods. Undefined if unknown. */
  record: ApiAnswers["eviction/records"]["records"][number] | undefined;
  /** The pod with which the others are compared. Undefined: each pod is compared with the one ranked before it. */
  about?: Neighbour | undefined;
}

/** Candidates by rank, the decision about each, and its reason. Two can be compared key by key. */
export function RankedPods({ pods, ranking, record, about }: Props) {
  const [opened, setOpened] = useState<string>();
  return (
    <Table
      label="Candidates by rank; 1 is evicted first"
      columns={["Pod", "Rank", "QoS level", "QoS class", "Priority", "Outcome", "Why", "Compare"]}
      rows={pods.map((one, index) => {
        const other = about ?? pods[index - 1];
        const isOpen = opened === one.uid;
        const onOpen = () => setOpened(isOpen ? undefined : one.uid);
        const isIt = one.uid === about?.uid;
        return {
          key: one.uid,
          class: isIt ? "pod-this" : undefined,
          cells: cellsOf(
            one,
            isIt,
            record ? namedBy(record, one.uid) : [],
            other && { whom: whomOf(one, other, about), isOpen, onOpen },
          ),
          below: isOpen && other && <Comparison a={other} b={one} ranking={ranking} />,
        };
      })}
    />
  );
}

function cellsOf(
  one: Neighbour,
  isIt: boolean,
  named: readonly string[],
  comparison: { whom: string; isOpen: boolean; onOpen(): void } | undefined,
) {
  return [
    isIt ? (
      <b>
        <Name text={podName(one)} /> (this pod)
      </b>
    ) : (
      <PodLink {...one} />
    ),
    one.rank,
    one.qosLevel,
    one.qosClass,
    one.priority,
    candidateOutcomes[one.outcome],
    <>
      <Prose text={one.why} longest={300} />
      {named.length > 0 && <div class="quiet">{shown(named.join("; "), 500)}</div>}
    </>,
    isIt || !comparison ? (
      "–"
    ) : (
      <button type="button" aria-expanded={comparison.isOpen} onClick={comparison.onOpen}>
        {comparison.isOpen ? "Close" : "Compare"}
        <span class="unseen">{`${comparison.isOpen ? " the comparison" : ""} ${comparison.whom}`}</span>
      </button>
    ),
  ];
}

// "with web-1" if the table is about one pod, otherwise "of web-2 with web-1".
function whomOf(one: Neighbour, other: Neighbour, about: Neighbour | undefined): string {
  return about ? `with ${shown(one.name, 80)}` : `of ${shown(one.name, 80)} with ${shown(other.name, 80)}`;
}
