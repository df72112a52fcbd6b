import { counted } from "@nodekeeper/api/wording";
import { useExport } from "../../export/exports.ts";
import { fields } from "./fields.ts";
import type { RecordsRead, ReplayResult } from "./messages.ts";
import type { ReplayState } from "./use-replay.ts";

interface SummaryProps {
  replay: ReplayState;
  /** Why texts are invalid, by field name. */
  problems: ReadonlyMap<string, string>;
}

/** The result in numbers. It stays visible while fields are edited. */
export function Summary({ replay, problems }: SummaryProps) {
  const { result, progress, isOld, isStopped, hasFailed, records } = replay;
  if (hasFailed) {
    return (
      <p role="alert" class="lost">
        The replay did not start or failed: the agent has stopped, or was replaced by another version.{" "}
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </p>
    );
  }
  return (
    <div class="result" role="status" aria-busy={isOld}>
      {result ? <Figures result={result} isOld={isOld} /> : <p>{waitingText(records)}</p>}
      {problems.size > 0 && (
        <p class="problem">Not valid, and replayed with the value in force: {labelsOf(problems)}.</p>
      )}
      {isStopped && isOld && (
        <p>
          Stopped: {result ? counted(result.replay.rounds, "round") : "no round"} of {records?.rounds ?? 0}{" "}
          replayed.{" "}
          <button type="button" onClick={replay.resume}>
            Continue
          </button>
        </p>
      )}
      {progress && !isStopped && (
        <p>
          <progress aria-label="Replayed rounds" value={progress.done} max={progress.of} /> Round{" "}
          {progress.done} of {progress.of}{" "}
          <button type="button" onClick={replay.stop}>
            Cancel
          </button>
        </p>
      )}
    </div>
  );
}

function Figures({ result, isOld }: { result: ReplayResult; isOld: boolean }) {
  const { rounds, victimsBefore, victimsAfter, differing } = result.replay;
  const figures: [string, number][] = [
    ["rounds replayed", rounds],
    ["victims recorded", victimsBefore],
    ["victims with this policy", victimsAfter],
    [differing.length === 1 ? "round differs" : "rounds differ", differing.length],
  ];
  useExport("Figures", () => figures.map(([what, value]) => ({ Figure: what, Value: value })));
  return (
    <dl class={`figures${isOld ? " old" : ""}`}>
      {figures.map(([name, value], at) => (
        <div key={at}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function waitingText(records: RecordsRead | undefined): string {
  if (!records || records.isReading) return "Rounds are replayed when they have been read.";
  const isNone = records.rounds === 0 && !records.hasMore && !records.failure;
  return isNone ? "There is nothing to replay." : "Nothing is replayed yet.";
}

function labelsOf(problems: ReadonlyMap<string, string>): string {
  return fields
    .filter(({ name }) => problems.has(name))
    .map(({ label }) => label)
    .join(", ");
}
