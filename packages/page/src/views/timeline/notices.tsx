import { missingLines } from "@nodekeeper/api/wording";
import { Refusal } from "../../api.ts";
import type { Live } from "../../live.ts";
import { runtimeNotice } from "../../runtime-notice.ts";
import { shown, at as timeText } from "../../text.ts";
import type { Range } from "./scale.ts";
import type { TimelineData } from "./use-data.ts";

/** What is missing in the shown range, and what to do about it. */
export function Notices({ live, data, range }: { live: Live; data: TimelineData; range: Range }) {
  const { node } = live;
  const { events, isReading, isCut, missedAt } = data;
  const since = events.knownSince ?? Number.NEGATIVE_INFINITY;
  const until = events.knownUntil ?? Number.POSITIVE_INFINITY;
  const hasMore = events.isFull && !isReading;
  const coverage = live["eviction/node"]?.coverage;
  const texts = [
    node && !node.lifecycle && "Lifecycle is off: to see containers, turn it on (lifecycle.enabled).",
    node && !node.eviction && "Eviction is off: for readings and evictions, turn it on (eviction.enabled).",
    live.waitingFor !== undefined &&
      `The agent does not know this node's pods yet: ${shown(live.waitingFor, 300)}`,
    live.waitingFor === undefined && runtimeNotice(live),
    events.logStart !== undefined &&
      events.logStart > range.from &&
      `The log of containers starts at ${timeText(events.logStart)}.`,
    ...(coverage ? missingLines(coverage, range.from) : []).map((line) => shown(line, 300)),
    hasMore &&
      since > range.from &&
      since > (events.logStart ?? 0) &&
      `There are more events than fit: containers are shown since ${timeText(since)}. Zoom in.`,
    hasMore &&
      until < range.to &&
      `There are more events than fit: containers are shown until ${timeText(until)}. Zoom in.`,
    isCut && "There are more marks or readings than fit. Zoom in.",
    missedAt !== undefined &&
      missedAt > range.from &&
      `Events before ${timeText(missedAt)} may be missing; the log was read again.`,
    ...data.problems.map(problemText),
  ];
  const shownTexts = [...new Set(texts)].filter((text) => typeof text === "string");
  return (
    <div role="status" class="tl-notices">
      {shownTexts.map((text) => (
        <p key={text}>{text}</p>
      ))}
    </div>
  );
}

// The frame shows that a part is disabled or the connection is lost.
function problemText(problem: unknown): string | undefined {
  if (!(problem instanceof Refusal) || problem.isNotFound) return undefined;
  return `The agent refuses to answer for the past: ${shown(problem.message, 300)}`;
}
