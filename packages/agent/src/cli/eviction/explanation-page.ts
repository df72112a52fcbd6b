import type { PodExplanation } from "@nodekeeper/api/records";
import { plainText } from "@nodekeeper/api/text";
import {
  counted,
  coverageLines,
  podText,
  timelineOf,
  timeOf,
  type Verdict,
  verdictOf,
} from "@nodekeeper/api/wording";
import { type Colour, type Output, paint } from "../output.ts";
import { roundText } from "./explained-round.ts";

const colours: Readonly<Record<Verdict["kind"], Colour>> = { evicted: "red", kept: "green", other: "yellow" };

/** The page of `nodekeeper explain pod`: the verdict, the timeline, then each round. */
export function explanationPage(explanation: PodExplanation, output: Output): string {
  const { namespace, name, uid, rounds, history } = explanation;
  const pod = rounds.findLast((round) => round.pod !== null)?.pod ?? history?.pod;
  const verdict = verdictOf(explanation);
  return [
    `${paint(output, "bold", plainText(`Pod ${namespace}/${name}`, 600))}  (${plainText(uid)})\n`,
    pod ? `${plainText(podText(pod), 600)}\n` : "",
    `\n${paint(output, colours[verdict.kind], plainText(verdict.text, 650))}\n`,
    stepsText(explanation, output),
    explanation.omitted > 0
      ? `\n(${counted(explanation.omitted, "round")} without a decision omitted)\n`
      : "",
    ...rounds.map((round) => `\n${roundText(round, output)}`),
    footer(explanation, output),
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

function footer({ otherUids, recordsSince, coverage }: PodExplanation, output: Output): string {
  const others =
    otherUids.length === 0
      ? ""
      : `Other recorded pods of this name (explain them by UID): ${plainText(otherUids.join(", "), 500)}\n`;
  const since = coverageLines(coverage, recordsSince)
    .map((line) => `${plainText(line, 500)}\n`)
    .join("");
  return others || since ? `\n${paint(output, "dim", `${others}${since}`.trimEnd())}\n` : "";
}
