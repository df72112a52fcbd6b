import type { ReplayedRound } from "@nodekeeper/api/replay";
import { type ReplayLabel, type ReplayLine, replayLines } from "@nodekeeper/api/wording";
import { exportedTime, type Row } from "../../export/exports.ts";
import { PodLink } from "../../parts/pod-link.tsx";
import { RoundLink } from "../../parts/round-link.tsx";
import { Time } from "../../parts/time.tsx";
import { podName, shown } from "../../text.ts";
import { placeAddress } from "../timeline/place.ts";

// Centers the round in the timeline.
const AROUND_MS = 5 * 60_000;
const LINES_AT_FIRST = 50;

/** Whether other pods would have been evicted, also in dry run. */
export function hasOtherVictims({ notEvicted, added, dryRun }: ReplayedRound): boolean {
  return [notEvicted, added, dryRun.missing, dryRun.added].some((pods) => pods.length > 0);
}

/** The differences in one round, as in `nodekeeper replay`, with links to the pods and to the timeline. */
export function ReplayedRoundSection({ round }: { round: ReplayedRound }) {
  const lines = replayLines(round);
  const omitted = lines.length - LINES_AT_FIRST;
  const [pod] = [...round.before, ...round.after];
  const timeline = placeAddress({
    range: { from: round.at - AROUND_MS, to: round.at + AROUND_MS },
    selection: pod && { kind: "pod", uid: pod.uid },
  });
  return (
    <section class="replayed" aria-labelledby={`what-if-round-${round.id}`}>
      <h3 id={`what-if-round-${round.id}`}>
        <RoundLink id={round.id} /> at{" "}
        <a href={timeline}>
          <Time at={round.at} />
        </a>
      </h3>
      <ul>
        {lines.slice(0, LINES_AT_FIRST).map((line, index) => (
          <Line key={index} line={line} />
        ))}
        {omitted > 0 && <li>and {omitted} more</li>}
      </ul>
    </section>
  );
}

/** Returns the differences in a round as rows of an export. */
export function rowsOfRound(round: ReplayedRound): Row[] {
  return replayLines(round).map(({ label, pod, text }) => ({
    Round: round.id,
    Time: exportedTime(round.at),
    Difference: meanings[label],
    Pod: pod && shown(podName(pod), 600),
    About: shown(text, 1_000),
  }));
}

// The labels are those of the command. These are read by screen readers and shown as tooltips.
const meanings: Readonly<Record<ReplayLabel, string>> = {
  "- evicted": "was evicted, would not be",
  "+ evicted": "would be evicted as well",
  "- dry run": "would have been evicted without dry run, would not be",
  "+ dry run": "would be evicted without dry run",
  "~ grace": "other grace period",
  "~ order": "other order",
  "~ refused": "other number of refusals",
  "- taint": "taint would not be set",
  "+ taint": "taint would be set as well",
  "? unknown": "not known",
};

function Line({ line: { label, pod, text } }: { line: ReplayLine }) {
  return (
    <li>
      <span class={`label ${classOf(label)}`} title={meanings[label]}>
        <span aria-hidden="true">{label}</span>
        <span class="unseen">{meanings[label]}:</span>
      </span>
      <span>
        {pod && (
          <>
            <PodLink {...pod} />
            {": "}
          </>
        )}
        {shown(text, 1_000)}
      </span>
    </li>
  );
}

function classOf(label: ReplayLabel): string {
  if (label === "- evicted") return "less";
  return label === "+ evicted" ? "more" : "";
}
