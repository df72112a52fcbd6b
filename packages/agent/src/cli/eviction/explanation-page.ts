import type { Neighbour, PodExplanation } from "@nodekeeper/api/records";
import { plainText } from "@nodekeeper/api/text";
import {
  candidateOutcomes,
  counted,
  coverageLines,
  podText,
  rankText,
  roundHeading,
  roundLines,
  timelineOf,
  timeOf,
  type Verdict,
  verdictOf,
} from "@nodekeeper/api/wording";
import { type Colour, type Output, paint, table } from "../output.ts";
import { labelled } from "../wording.ts";

const colours: Readonly<Record<Verdict["kind"], Colour>> = { evicted: "red", kept: "green", other: "yellow" };

/**
 * The page of `nodekeeper explain pod`: the verdict, the timeline, then each round.
 * @param sources lines about who answered
 */
export function explanationPage(
  explanation: PodExplanation,
  output: Output,
  sources: readonly string[] = [],
): string {
  const { namespace, name, uid, rounds, history } = explanation;
  const pod = rounds.findLast((round) => round.pod !== null)?.pod ?? history?.pod;
  const verdict = verdictOf(explanation);
  return [
    `${paint(output, "bold", plainText(`Pod ${namespace}/${name}`, 600))}  (${plainText(uid)})\n`,
    pod ? `${plainText(podText(pod), 600)}\n` : "",
    `\n${paint(output, colours[verdict.kind], plainText(verdict.text, 650))}\n`,
    stepsText(explanation, output),
    explanation.omitted > 0 ? `\n(${counted(explanation.omitted, "other round")} omitted)\n` : "",
    ...rounds.map((round) => `\n${roundText(round, output)}`),
    footer(explanation, sources, output),
  ].join("");
}

// Each step with its offset from the round that first selected the pod, or from the first step.
function stepsText(explanation: PodExplanation, output: Output): string {
  const all = timelineOf(explanation);
  if (all.length === 0) return "";
  const width = Math.max(...all.map(({ offset }) => offset.length));
  const lines = all.map(
    ({ at, offset, message }) => `  ${timeOf(at)}  ${offset.padStart(width)}  ${plainText(message)}\n`,
  );
  return `\n${paint(output, "bold", "What happened")}\n${lines.join("")}`;
}

function footer(
  { otherUids, recordsSince, coverage }: PodExplanation,
  sources: readonly string[],
  output: Output,
): string {
  const others =
    otherUids.length === 0
      ? ""
      : `Other recorded pods of this name (explain them by UID): ${plainText(otherUids.join(", "), 500)}\n`;
  const since = [...coverageLines(coverage, recordsSince), ...sources]
    .map((line) => `${plainText(line, 500)}\n`)
    .join("");
  return others || since ? `\n${paint(output, "dim", `${others}${since}`.trimEnd())}\n` : "";
}

type Round = PodExplanation["rounds"][number];

/** Formats a round from a pod's point of view: met thresholds, requests, the decision, and the ranking. */
function roundText(round: Round, output: Output): string {
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
