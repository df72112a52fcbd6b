import {
  candidateOutcomes,
  coverageLines,
  podText,
  rankText,
  roundHeading,
  roundLines,
  timelineOf,
  timeOf,
  verdictOf,
} from "@nodekeeper/api/wording";
import { markdownOf, markdownTable, markdownText } from "../../parts/markdown.ts";
import { podName } from "../../text.ts";
import { decidingRound, type ExplainedRound, type Explanation, recordedPod, stampOf } from "./story.ts";

/**
 * Returns the explanation of a pod as Markdown, in the words of `nodekeeper explain pod`. Includes the round that
 * decided about the pod.
 */
export function explanationMarkdown(explanation: Explanation, node: string, link: string): string {
  const { namespace, name, uid, coverage, recordsSince } = explanation;
  const verdict = verdictOf(explanation);
  const pod = recordedPod(explanation);
  const round = decidingRound(explanation);
  const steps = timelineOf(explanation).map(
    ({ at, offset, message }) => `- ${timeOf(at)} (${offset}): ${markdownText(message)}`,
  );
  return markdownOf(
    `${markdownText(`Pod ${namespace}/${name}`)}: ${stampOf(explanation, verdict).text}`,
    [
      [markdownText(verdict.text)],
      [markdownText(`Node ${node}, UID ${uid}${pod ? `, ${podText(pod)}` : ""}`)],
      steps.length > 0 ? ["**What happened**", "", ...steps] : [],
      ...(round ? roundParts(round) : []),
      coverageLines(coverage, recordsSince).map(markdownText),
    ],
    link,
  );
}

function roundParts(round: ExplainedRound): string[][] {
  const { place, others } = round;
  const rank = rankText(round);
  const lines = [...roundLines(round), ...(rank === undefined ? [] : [{ label: "rank", text: rank }])].map(
    ({ label, text }) => `- ${label}: ${markdownText(text)}`,
  );
  const listed = place && others.length > 0 ? [place, ...others].sort((a, b) => a.rank - b.rank) : [];
  return [
    [`**${markdownText(roundHeading(round))}**`, "", ...lines],
    listed.length === 0
      ? []
      : markdownTable(
          ["Rank", "Pod", "QoS level", "QoS class", "Priority", "Outcome", "Why"],
          listed.map((one) => [
            one.rank,
            podName(one),
            one.qosLevel,
            one.qosClass,
            one.priority,
            candidateOutcomes[one.outcome],
            one.why,
          ]),
        ),
  ];
}
