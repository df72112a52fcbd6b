import { counted, differenceText, replaySentences } from "@nodekeeper/api/wording";
import { useMemo, useState } from "preact/hooks";
import { useExport } from "../../export/exports.ts";
import { Section } from "../../parts/section.tsx";
import { shown } from "../../text.ts";
import type { ReplayResult } from "./messages.ts";
import { hasOtherVictims, ReplayedRoundSection, rowsOfRound } from "./round.tsx";
import type { ReplayState } from "./use-replay.ts";

const ROUNDS_AT_FIRST = 25;

/** Decisions that would have been different, as in `nodekeeper replay`. */
export function Differences({ replay: { result } }: { replay: ReplayState }) {
  // The page is rendered on each message of the stream; this only if the result changes.
  return useMemo(
    () =>
      result && (
        <Section title="Differences">
          <Sentences result={result} />
          <Rounds result={result} />
        </Section>
      ),
    [result],
  );
}

function Sentences({ result: { replay, policy, malformed } }: { result: ReplayResult }) {
  const { dryRun, differing, uncertain } = replaySentences(replay);
  useExport("Changed settings", () =>
    policy.map((difference) => ({
      Setting: difference.field,
      Difference: shown(differenceText(difference), 500),
    })),
  );
  return (
    <>
      {policy.length === 0 ? (
        <p>The policy is the same as in the last replayed round.</p>
      ) : (
        <>
          <p>The policy differs from the one in the last replayed round:</p>
          <ul>
            {policy.map((difference) => (
              <li key={difference.field}>
                <code>{difference.field}</code> {shown(differenceText(difference), 500)}
              </li>
            ))}
          </ul>
        </>
      )}
      {dryRun && <p>{dryRun}</p>}
      <p>{differing}</p>
      {uncertain && <p>{uncertain}</p>}
      {malformed.map(({ id, message }) => (
        <p key={id} class="problem">
          Round {id} is left out: it is incomplete or malformed: {shown(message, 300)}
        </p>
      ))}
    </>
  );
}

function Rounds({ result }: { result: ReplayResult }) {
  const [count, setCount] = useState(ROUNDS_AT_FIRST);
  const [isNarrow, setNarrow] = useState(false);
  const { differing } = result.replay;
  const ofVictims = useMemo(() => differing.filter(hasOtherVictims), [differing]);
  const listed = isNarrow ? ofVictims : differing;
  useExport("Differences", () => listed.slice(0, count).flatMap(rowsOfRound));
  return (
    <>
      {ofVictims.length < differing.length && (
        <p>
          <label>
            <input
              type="checkbox"
              checked={isNarrow}
              onChange={(event) => setNarrow(event.currentTarget.checked)}
            />{" "}
            Only {counted(ofVictims.length, "round")} with other victims
          </label>
        </p>
      )}
      {listed.slice(0, count).map((round) => (
        <ReplayedRoundSection key={round.id} round={round} />
      ))}
      {listed.length > count && (
        <button type="button" onClick={() => setCount(count + 4 * ROUNDS_AT_FIRST)}>
          Show more of {listed.length} rounds
        </button>
      )}
    </>
  );
}
