import type { ExplainedCondition, NodeExplanation } from "@nodekeeper/api/records";
import { plainText } from "@nodekeeper/api/text";
import {
  age,
  conditionTaintsText,
  coverageLines,
  nodeTaintText,
  shownTaints,
  timeOf,
} from "@nodekeeper/api/wording";
import { formatDuration } from "@nodekeeper/core/lib";
import { type Output, paint } from "../output.ts";
import { labelled } from "../wording.ts";

/** The page of `nodekeeper explain node`: each condition set by eviction, then the timeline. */
export function nodePage(explanation: NodeExplanation, output: Output): string {
  const { nodeName, conditions, events, recordsSince, coverage } = explanation;
  const taints = shownTaints(explanation);
  const hasOwn = taints.some(({ isOwn }) => isOwn);
  const kept = coverageLines(coverage, recordsSince).map((line) => plainText(line, 500));
  const since = kept.length === 0 ? "" : `\n${kept.join("\n")}\n`;
  return [
    `${paint(output, "bold", plainText(nodeName === null ? "Node" : `Node ${nodeName}`, 300))}\n`,
    conditions.length > 0 ? "" : `\nNo condition${hasOwn ? "" : " or taint"} is set by Nodekeeper.\n`,
    ...conditions.map((condition) => `\n${conditionText(condition, explanation, output)}`),
    taints.length === 0 ? "" : `\n${paint(output, "bold", "Taints of the Node")}\n`,
    ...taints.map((taint) => `  ${plainText(nodeTaintText(taint, explanation))}\n`),
    events.length === 0 ? "" : `\n${paint(output, "bold", "What happened")}\n`,
    ...events.map(({ at, message }) => `  ${timeOf(at)}  ${plainText(message)}\n`),
    since && paint(output, "dim", since),
  ].join("");
}

function conditionText(
  condition: ExplainedCondition,
  { at, transitionMs }: NodeExplanation,
  output: Output,
): string {
  const { name, target, plugin, cause, since, lastMet, isMet, until } = condition;
  const object = target === "node" ? "Node" : "CustomNodeResource";
  const lasting = at === null ? "" : ` (for ${age(at - since)})`;
  const transition = transitionMs === null ? "a while" : formatDuration(transitionMs);
  return [
    `${paint(output, "yellow", plainText(`Condition ${name} of the ${object}`, 300))}\n`,
    labelled("taints", conditionTaintsText(condition)),
    labelled("set by", cause === undefined ? plugin : `${plugin}: ${cause}`),
    labelled("since", `${timeOf(since)}${lasting}`),
    labelled(
      "until",
      isMet || until === null
        ? `${transition} after it clears`
        : `${timeOf(until)} unless it is reported again; last reported ${timeOf(lastMet)}`,
    ),
  ].join("");
}
