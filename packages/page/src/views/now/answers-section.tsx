import { useExport } from "../../export/exports.ts";
import { nodeNow } from "../../node-clock.ts";
import type { Tone } from "../../parts/badge.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { Prose } from "../../parts/prose.tsx";
import { useTicking } from "../../parts/ticker.ts";
import { shown } from "../../text.ts";
import { doneLines, type Facts, knownAt, type Line, nextLines, wrongLines } from "./answers.ts";

const MOST_LINES = 6;
const severity: readonly Tone[] = ["bad", "warn"];

/** The view's answers in a few sentences: is something wrong, what was done, what comes next. */
export function AnswersSection(known: Omit<Facts, "now">) {
  const factsAt = (now: number): Facts => ({ ...known, now: knownAt(known.live, now) });
  return (
    <div class="now-answers">
      <Answer title="Is something wrong?" linesOf={(now) => wrongLines(factsAt(now))} isGraded />
      <Answer title="What was done?" linesOf={(now) => doneLines(factsAt(now))} />
      <Answer title="What comes next?" linesOf={(now) => nextLines(factsAt(now))} />
    </div>
  );
}

interface AnswerProps {
  title: string;
  linesOf: (now: number) => readonly Line[];
  /** Whether the card has the color of its most severe line. */
  isGraded?: boolean;
}

function Answer({ title, linesOf, isGraded = false }: AnswerProps) {
  // Ages in the lines change with the time.
  useTicking((now) => JSON.stringify(linesOf(now)));
  const lines = linesOf(nodeNow());
  useExport(title, () => lines.map(({ text, tone }) => ({ Severity: tone, Answer: shown(text) })));
  const tone = severity.find((each) => lines.some((line) => line.tone === each)) ?? "ok";
  return (
    <section class={isGraded && lines.length > 0 ? `card ${tone}` : "card"} aria-label={title}>
      <h2>{title}</h2>
      {lines.length === 0 && <Waiting>Waiting for the agent's answer.</Waiting>}
      <ul>
        {lines.slice(0, MOST_LINES).map((line, index) => (
          <li key={index}>
            <Icon name={line.tone} tone={line.tone} />
            <span>
              <Prose text={`${line.text}.`} longest={400} />
            </span>
          </li>
        ))}
        {lines.length > MOST_LINES && <li class="quiet">and {lines.length - MOST_LINES} more, below</li>}
      </ul>
    </section>
  );
}
