import type { Neighbour, PodExplanation } from "@nodekeeper/api/records";
import { plainText } from "@nodekeeper/api/text";
import { candidateOutcomes, counted, rankText, roundHeading, roundLines } from "@nodekeeper/api/wording";
import { type Output, paint, table } from "../output.ts";
import { labelled } from "../wording.ts";

type Round = PodExplanation["rounds"][number];

/** Formats a round from a pod's point of view: met thresholds, requests, the decision, and the ranking. */
export function roundText(round: Round, output: Output): string {
  return [
    `${paint(output, "bold", roundHeading(round))}\n`,
    ...roundLines(round).map(({ label, text }) => labelled(label, text)),
    ranking(round, output),
  ].join("");
}

function ranking(round: Round, output: Output): string {
  const { place, others, candidates } = round;
  const rank = rankText(round);
  if (place === null || rank === undefined) return "";
  if (others.length === 0) return labelled("rank", rank);
  const shown = [place, ...others].sort((a, b) => a.rank - b.rank);
  const rest = candidates - shown.length;
  return [
    labelled("rank", rank),
    table(
      output,
      ["  RANK", "POD", "LEVEL", "CLASS", "PRIORITY", "OUTCOME", "WHY"],
      shown.map((one) => rankingRow(one, one === place)),
      (row, column) => (shown[row] === place && column <= 1 ? "cyan" : undefined),
    ),
    rest > 0 ? `  and ${counted(rest, "more candidate")}\n` : "",
  ].join("");
}

function rankingRow(one: Neighbour, isIt: boolean): string[] {
  return [
    `${isIt ? "> " : "  "}${one.rank}`,
    plainText(`${one.namespace}/${one.name}`, 80),
    one.qosLevel,
    one.qosClass,
    String(one.priority),
    candidateOutcomes[one.outcome],
    plainText(one.why, 200),
  ];
}
