import { failureText, reasonText, refusalCountTexts, timeOf } from "@nodekeeper/api/wording";
import { markdownOf, markdownTable, markdownText } from "../../parts/markdown.ts";
import { podName } from "../../text.ts";
import { decidedPods, type RoundRecord, readingsOf, sentenceOf } from "./words.ts";

// A round may have refused every pod of the node.
const MOST_REFUSALS = 20;

/** Returns the explanation of a round as Markdown, in the words of its view. */
export function roundMarkdown(record: RoundRecord, node: string, link: string): string {
  const { id, input, decision } = record;
  const { failures, refusals, refusalCounts, ranking } = decision;
  const readings = readingsOf(record);
  const decided = decidedPods(record);
  const refused = refusals.slice(0, MOST_REFUSALS);
  return markdownOf(
    `Round ${id} at ${timeOf(input.now)}`,
    [
      [markdownText(sentenceOf(record))],
      [markdownText(`Node ${node}: ${input.pods.length} pods, ${ranking.length} of them candidates.`)],
      readings.length === 0
        ? []
        : markdownTable(
            ["Plugin", "Observed", "Type", "What followed"],
            readings.map(({ plugin, observed, type, consequence }) => [plugin, observed, type, consequence]),
          ),
      failures.length === 0
        ? []
        : ["**Failed calls**", "", ...failures.map((failure) => `- ${markdownText(failureText(failure))}`)],
      decided.length === 0
        ? []
        : markdownTable(
            ["Pod", "Decision", "Requested by", "Why"],
            decided.map(({ pod, what, plugins, why }) => [podName(pod), what, plugins.join(", "), why]),
          ),
      refused.length === 0
        ? []
        : [
            `**Requests not granted**: ${markdownText(refusalCountTexts(refusalCounts).join(", "))}`,
            "",
            ...markdownTable(
              ["Pod", "Requested by", "Why it was not evicted"],
              refused.map((one) => [podName(one), one.plugin, reasonText(one.reason, one.message)]),
            ),
          ],
    ],
    link,
  );
}
