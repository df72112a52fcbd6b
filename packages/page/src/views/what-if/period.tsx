import { useState } from "preact/hooks";
import { counted } from "../../../../agent/src/eviction/wording/index.ts";
import { at, shown } from "../../text.ts";
import type { RecordsRead } from "./messages.ts";
import type { ReplayState } from "./use-replay.ts";

interface PeriodProps {
  since: number;
  replay: ReplayState;
  onChange(since: number): void;
}

const HOUR_MS = 3_600_000;
const periods: readonly [string, number][] = [
  ["last hour", HOUR_MS],
  ["last 6 hours", 6 * HOUR_MS],
  ["last 24 hours", 24 * HOUR_MS],
  ["last 7 days", 168 * HOUR_MS],
  ["all that is recorded", Number.POSITIVE_INFINITY],
];

/** Which rounds are replayed, and how to have others. */
export function Period({ since, replay, onChange }: PeriodProps) {
  const [chosen, setChosen] = useState("");
  const { records } = replay;
  return (
    <section aria-labelledby="what-if-rounds">
      <h2 id="what-if-rounds">Recorded rounds</h2>
      <p class="controls">
        <label>
          Rounds of{" "}
          <select
            value={chosen}
            onChange={(event) => {
              const name = event.currentTarget.value;
              const ms = periods.find(([period]) => period === name)?.[1];
              setChosen(name);
              if (ms !== undefined) onChange(Math.max(0, Date.now() - ms));
            }}
          >
            <option value="">{since === 0 ? "all that is recorded" : `since ${at(since)}`}</option>
            {periods.map(([name]) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>{" "}
        <button type="button" onClick={replay.readAgain}>
          Read again
        </button>
      </p>
      <div aria-live="polite">{records && <Records since={since} records={records} replay={replay} />}</div>
    </section>
  );
}

function Records({ since, records, replay }: { since: number; records: RecordsRead; replay: ReplayState }) {
  const { rounds, isReading, failure, tooLarge, hasMore, isFull } = records;
  return (
    <>
      <p>
        {rounds > 0 ? spanText(records) : isReading ? "Reading." : noneText(since, failure !== undefined)}{" "}
        {rounds > 0 && isReading && "Reading more. "}
        {isReading && (
          <button type="button" onClick={replay.stop}>
            Stop
          </button>
        )}
      </p>
      {tooLarge.map(({ id, bytes }) => (
        <p key={id}>
          Round {id} is skipped: {(bytes / 1_048_576).toFixed(1)} MiB exceed the maximum size of a response.{" "}
          <code>nodekeeper replay --from</code> with the state directory replays it too.
        </p>
      ))}
      {failure && <Failure failure={failure} onAgain={rounds > 0 ? replay.readMore : replay.readAgain} />}
      {!isReading && !failure && hasMore && (
        <p>
          There are later ones.{" "}
          {isFull ? (
            <>
              This page can keep no more: choose a shorter time, or use <code>nodekeeper replay</code>.
            </>
          ) : (
            <button type="button" onClick={replay.readMore}>
              Read on
            </button>
          )}
        </p>
      )}
    </>
  );
}

function Failure({ failure, onAgain }: { failure: NonNullable<RecordsRead["failure"]>; onAgain(): void }) {
  const text =
    failure.kind === "unreachable"
      ? "The agent does not answer. Does it run, and is the port still forwarded?"
      : failure.status === 404
        ? `There are no records to read: ${shown(failure.message, 500)}.`
        : failure.status === 429
          ? "The agent answers others just now."
          : `The agent refused: ${shown(failure.message, 500)}.`;
  return (
    <p role="alert" class="lost">
      {text}{" "}
      <button type="button" onClick={onAgain}>
        Try again
      </button>
    </p>
  );
}

/** "12 rounds, from 11:40:02 to 12:31:05." */
function spanText({ rounds, first, last }: RecordsRead): string {
  return `${counted(rounds, "round")} in which something happened, ${
    first === last ? `at ${at(first!)}` : `from ${at(first!)} to ${at(last!)}`
  }.`;
}

function noneText(since: number, hasFailed: boolean): string {
  if (hasFailed) return "No round is read.";
  return since === 0
    ? "No round is recorded yet: rounds are recorded when a threshold is met, a pod is requested or an eviction ends."
    : `No round is recorded since ${at(since)}: nothing to replay. Choose an earlier time.`;
}
