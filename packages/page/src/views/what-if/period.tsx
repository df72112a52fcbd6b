import { counted } from "@nodekeeper/api/wording";
import { nodeNow } from "../../node-clock.ts";
import { Section } from "../../parts/section.tsx";
import { at, shown } from "../../text.ts";
import type { RecordsRead } from "./messages.ts";
import type { ReplayState } from "./use-replay.ts";

interface PeriodProps {
  since: number;
  /** Whether it is the default of the last hour, because the address has no time. */
  isDefault: boolean;
  /** Number of rounds recorded after those read, as reported by the stream. */
  later: number;
  replay: ReplayState;
  onChange(since: number): void;
}

const HOUR_MS = 3_600_000;
const LAST_HOUR = "last hour";
const periods: ReadonlyMap<string, number> = new Map([
  [LAST_HOUR, HOUR_MS],
  ["last 6 hours", 6 * HOUR_MS],
  ["last 24 hours", 24 * HOUR_MS],
  ["last 7 days", 168 * HOUR_MS],
  ["all that is recorded", Number.POSITIVE_INFINITY],
]);

/** The rounds that are replayed, and how to select others. */
export function Period({ since, isDefault, later, replay, onChange }: PeriodProps) {
  const { records } = replay;
  const current = isDefault ? LAST_HOUR : since === 0 ? "all that is recorded" : `since ${at(since)}`;
  return (
    <Section title="Recorded rounds">
      <p>
        <label>
          Rounds of{" "}
          <select
            value={current}
            onChange={(event) => {
              const ms = periods.get(event.currentTarget.value);
              if (ms !== undefined) onChange(Math.max(0, nodeNow() - ms));
            }}
          >
            {!periods.has(current) && <option>{current}</option>}
            {[...periods.keys()].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </p>
      <div role="status">
        {records && <Records since={since} later={later} records={records} replay={replay} />}
      </div>
    </Section>
  );
}

interface RecordsProps extends Pick<PeriodProps, "since" | "later" | "replay"> {
  records: RecordsRead;
}

function Records({ since, later, records, replay }: RecordsProps) {
  const { rounds, isReading, failure, tooLarge, hasMore, isFull } = records;
  const canReadOn = !isReading && !failure && (hasMore || later > 0);
  return (
    <>
      <p>
        {rounds > 0
          ? spanText(records)
          : isReading
            ? "Reading."
            : noneText(since, hasMore || failure !== undefined)}{" "}
        {rounds > 0 && isReading && "Reading more. "}
        {isReading && (
          <button type="button" onClick={replay.stop}>
            Stop
          </button>
        )}
        {canReadOn && !isFull && (
          <button type="button" onClick={replay.readMore}>
            {hasMore ? "Read later ones too" : `Read ${counted(later, "later round")}`}
          </button>
        )}
        {canReadOn && isFull && (
          <>
            There are later ones, which are more than this page keeps: choose a shorter time, or use{" "}
            <code>nodekeeper replay</code>.
          </>
        )}
      </p>
      {tooLarge.map(({ id, bytes }) => (
        <p key={id}>
          Round {id} was skipped: {(bytes / 1_048_576).toFixed(1)} MiB exceeds the maximum response size.{" "}
          <code>nodekeeper replay --from</code> with the state directory replays it too.
        </p>
      ))}
      {failure && <Failure failure={failure} onAgain={replay.readMore} />}
    </>
  );
}

function Failure({ failure, onAgain }: { failure: NonNullable<RecordsRead["failure"]>; onAgain(): void }) {
  const text =
    failure.kind === "unreachable"
      ? "The agent does not answer. Is it running, and is the port still forwarded?"
      : failure.status === 404
        ? `There are no records to read: ${shown(failure.message, 500)}.`
        : failure.status === 429
          ? "The agent is busy with other requests."
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

/** "12 rounds in which something happened, from 11:40:02 to 12:31:05." */
function spanText({ rounds, first, last }: RecordsRead): string {
  return `${counted(rounds, "round")} in which something happened, ${
    first === last ? `at ${at(first!)}` : `from ${at(first!)} to ${at(last!)}`
  }.`;
}

function noneText(since: number, isUnread: boolean): string {
  if (isUnread) return "No round has been read.";
  return since === 0
    ? "No round is recorded yet: rounds are recorded when a threshold is met, a pod is requested or an eviction ends."
    : `No round that could be replayed is recorded since ${at(since)}. Choose an earlier time.`;
}
