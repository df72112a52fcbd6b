import type { ArchivedNodeExplanation } from "@nodekeeper/api/archive";
import type { EvictionStep, ExplainedCondition, NodeExplanation } from "@nodekeeper/api/records";
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

/**
 * The page of `nodekeeper explain node`: each condition set by eviction, then the timeline.
 * @param sources lines about who answered
 */
export function nodePage(
  explanation: NodeExplanation,
  output: Output,
  sources: readonly string[] = [],
): string {
  const { nodeName, conditions, events, recordsSince, coverage } = explanation;
  const taints = shownTaints(explanation);
  return [
    `${paint(output, "bold", plainText(nodeName === null ? "Node" : `Node ${nodeName}`, 300))}\n`,
    conditions.length > 0 ? "" : `\n${noneText(explanation)}\n`,
    ...conditions.map((condition) => `\n${conditionText(condition, explanation, output)}`),
    taints.length === 0 ? "" : `\n${paint(output, "bold", "Taints of the Node")}\n`,
    ...taints.map((taint) => `  ${plainText(nodeTaintText(taint, explanation))}\n`),
    ...eventLines(events, output),
    footer([...coverageLines(coverage, recordsSince), ...sources], output),
  ].join("");
}

function noneText({ taints, transitionMs }: NodeExplanation): string {
  // Conditions are evaluated with the policy of the last recorded round.
  if (transitionMs === null) return "The conditions are not known: no round is recorded.";
  if (taints === null) return "No condition is set by Nodekeeper. The taints of the Node are not known.";
  return `No condition${taints.some(({ isOwn }) => isOwn) ? "" : " or taint"} is set by Nodekeeper.`;
}

/** The page of `explain node` about a node whose agent does not answer, from its exported records. */
export function archivedNodePage(
  { nodeName, lastAt, conditions, events, coverage }: ArchivedNodeExplanation,
  output: Output,
  sources: readonly string[],
): string {
  const standing = conditions.map(({ name, target, plugin, cause, since }) => {
    const object = target === "node" ? "Node" : "CustomNodeResource";
    return [
      `\n${paint(output, "yellow", plainText(`Condition ${name} of the ${object}`, 300))}\n`,
      labelled("set by", cause === undefined ? plugin : `${plugin}: ${cause}`),
      labelled("since", timeOf(since)),
      labelled("until", `not cleared by the last record, of ${timeOf(lastAt)}`),
    ].join("");
  });
  return [
    `${paint(output, "bold", plainText(`Node ${nodeName}`, 300))}\n`,
    ...standing,
    ...eventLines(events, output),
    footer([...coverageLines(coverage, null), ...sources], output),
  ].join("");
}

function eventLines(events: readonly EvictionStep[], output: Output): string[] {
  if (events.length === 0) return [];
  const lines = events.map(({ at, message }) => `  ${timeOf(at)}  ${plainText(message)}\n`);
  return [`\n${paint(output, "bold", "What happened")}\n`, ...lines];
}

function footer(lines: readonly string[], output: Output): string {
  if (lines.length === 0) return "";
  return paint(output, "dim", `\n${lines.map((line) => plainText(line, 500)).join("\n")}\n`);
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
