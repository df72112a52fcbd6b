import { goalsOf, ratiosText } from "./goals.ts";
import type { Summary } from "./results.ts";
import { type RowName, rows } from "./rows.ts";

/** What became of a row. */
export type Outcome = { summary: Summary } | { skipped: string } | { failed: string };

/** One line for each row, and how many goals are met. */
export function summaryText(names: readonly RowName[], outcomes: ReadonlyMap<RowName, Outcome>): string {
  const lines = names.map((name) => ({ name, ...lineOf(name, outcomes.get(name)) }));
  const count = (verdict: Verdict) => lines.filter((line) => line.verdict === verdict).length;
  return [
    ...lines.map(({ name, verdict, text }) => `${verdict.padEnd(8)} ${name}: ${text}`),
    `${verdicts.map((verdict) => `${count(verdict)} ${verdict}`).join(", ")}`,
  ].join("\n");
}

const verdicts = ["met", "missed", "no goal", "skipped", "FAILED"] as const;
type Verdict = (typeof verdicts)[number];

function lineOf(name: RowName, outcome: Outcome | undefined): { verdict: Verdict; text: string } {
  if (!outcome) return { verdict: "FAILED", text: "not measured" };
  if ("failed" in outcome) return { verdict: "FAILED", text: firstLineOf(outcome.failed) };
  if ("skipped" in outcome) return { verdict: "skipped", text: firstLineOf(outcome.skipped) };
  const goals = goalsOf(rows[name], outcome.summary);
  const ratio = `ratio ${ratiosText(outcome.summary)}`;
  if (goals.length === 0) return { verdict: "no goal", text: ratio };
  return {
    verdict: goals.every(({ isMet }) => isMet) ? "met" : "missed",
    text: `${ratio}, goal ${goals.map(({ text }) => text).join("; ")}`,
  };
}

function firstLineOf(text: string): string {
  return text.split("\n", 1)[0]!;
}
