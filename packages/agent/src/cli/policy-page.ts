import { plainText } from "@nodekeeper/api/text";
import { formatDuration } from "@nodekeeper/core/lib";
import type { PolicyTrial } from "../policy/index.ts";
import { type Colour, type Output, paint, table } from "./output.ts";

const states: Readonly<Record<PolicyTrial["state"], [text: string, colour: Colour]>> = {
  met: ["met", "red"],
  notMet: ["not met", "green"],
  unknown: ["unknown, evicts no pod", "yellow"],
};
const signs = { lessThan: "<", greaterThan: ">" } as const;

/** Formats the result of one policy for one scene. */
export function trialPage(trial: PolicyTrial, output: Output): string {
  const { policy, type, isHeld, problems, rank, ranking, excluded } = trial;
  const [state, colour] = states[trial.state];
  const held = isHeld ? ", kept by minimumReclaim" : "";
  const lines = [
    `${paint(output, "bold", policy)} (${type}): ${paint(output, colour, state)}${held}${comparison(trial)}\n`,
    ...problems.map((problem) => `  ${paint(output, "yellow", plainText(problem))}\n`),
  ];
  if (ranking.length === 0) lines.push("  no pod can be evicted\n");
  else lines.push(indented(rankingTable(ranking, rank, output)));
  if (excluded.length > 0) lines.push(indented(excludedTable(excluded, output)));
  return lines.join("");
}

function comparison({ state, observed, threshold, operator, gracePeriodMs }: PolicyTrial): string {
  const grace = state === "met" && gracePeriodMs > 0 ? `; evicts after ${formatDuration(gracePeriodMs)}` : "";
  if (observed === null || threshold === null) return grace;
  const isBeyond = operator === "lessThan" ? observed < threshold : observed > threshold;
  const sign = isBeyond ? signs[operator] : `not ${signs[operator]}`;
  return `: ${figure(observed)} ${sign} ${figure(threshold)}${grace}`;
}

function rankingTable(ranking: PolicyTrial["ranking"], rank: readonly string[], output: Output): string {
  const headings = ["ORDER", "POD", ...rank.map((text) => plainText(text, 40))];
  const rows = ranking.map(({ namespace, name, values }, index) => [
    String(index + 1),
    plainText(`${namespace}/${name}`),
    ...values.map(figure),
  ]);
  return table(output, headings, rows);
}

function excludedTable(excluded: PolicyTrial["excluded"], output: Output): string {
  const rows = excluded.map(({ namespace, name, why }) => [
    plainText(`${namespace}/${name}`),
    plainText(why),
  ]);
  return table(output, ["STAYS", "WHY"], rows);
}

// Fractions are rounded to six significant digits. Integers, such as bytes, are not rounded.
function figure(value: number): string {
  return Number.isInteger(value) ? String(value + 0) : String(Number(value.toPrecision(6)));
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
