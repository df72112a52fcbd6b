import { useMemo, useState } from "preact/hooks";
import { differenceText, replaySentences } from "../../../../agent/src/eviction/wording/index.ts";
import { shown } from "../../text.ts";
import type { RecordsRead, ReplayResult } from "./messages.ts";
import { ReplayedRoundSection } from "./round.tsx";
import type { ReplayState } from "./use-replay.ts";

const ROUNDS_AT_FIRST = 25;

/** What would have been decided otherwise. */
export function Result({ replay, problems }: { replay: ReplayState; problems: number }) {
  const { result, progress, isOld, hasFailed, records } = replay;
  const rounds = useMemo(() => result && <Rounds result={result} />, [result]);
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
    <section aria-labelledby="what-if-result" aria-busy={isOld}>
      <h2 id="what-if-result">Result</h2>
      <div aria-live="polite">
        {problems > 0 && <p class="problem">Not all fields are valid: see there.</p>}
        {progress && (
          <p>
            <label>
              Replaying round {progress.done} of {progress.of}{" "}
              <progress value={progress.done} max={progress.of} />
            </label>{" "}
            <button type="button" onClick={replay.stop}>
              Cancel
            </button>
          </p>
        )}
        {result && <Summary result={result} isOld={isOld} />}
        {!result && !progress && <p>{waitingText(records)}</p>}
      </div>
      {rounds}
    </section>
  );
}

function waitingText(records: RecordsRead | undefined): string {
  if (!records || records.isReading) return "Rounds are replayed when they have been read.";
  return records.rounds === 0 ? "There is nothing to replay." : "Not replayed.";
}

function Summary({ result, isOld }: { result: ReplayResult; isOld: boolean }) {
  const { replay, policy, malformed } = result;
  const sentences = replaySentences(replay);
  return (
    <div class={isOld ? "old" : ""}>
      <dl class="figures">
        <Figure name="rounds replayed" value={replay.rounds} />
        <Figure name="victims recorded" value={replay.victimsBefore} />
        <Figure name="victims with this policy" value={replay.victimsAfter} />
        <Figure
          name={replay.differing.length === 1 ? "round differs" : "rounds differ"}
          value={replay.differing.length}
        />
      </dl>
      <p>{sentences.differing}</p>
      {sentences.uncertain && <p>{sentences.uncertain}</p>}
      {malformed.map(({ id, message }) => (
        <p key={id} class="problem">
          Round {id} is left out: it is incomplete or malformed: {shown(message, 300)}
        </p>
      ))}
      {policy.length === 0 ? (
        <p>The policy is that of the last replayed round.</p>
      ) : (
        <>
          <p>The policy differs from that of the last replayed round:</p>
          <ul>
            {policy.map((difference) => (
              <li key={difference.field}>
                <code>{difference.field}</code> {shown(differenceText(difference), 500)}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Figure({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Rounds({ result }: { result: ReplayResult }) {
  const [count, setCount] = useState(ROUNDS_AT_FIRST);
  const { differing } = result.replay;
  return (
    <>
      {differing.slice(0, count).map((round) => (
        <ReplayedRoundSection key={round.id} round={round} />
      ))}
      {differing.length > count && (
        <button type="button" onClick={() => setCount(count + 4 * ROUNDS_AT_FIRST)}>
          Show more of {differing.length} rounds
        </button>
      )}
    </>
  );
}
