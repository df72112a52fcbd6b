import { Remedy } from "../../parts/remedy.tsx";
import { shown } from "../../text.ts";
import type { Plugin } from "./groups.ts";
import { adviceText } from "./words.ts";

const LONGEST = 1_000;

/** What is wrong with a plugin, and what to do; nothing where nothing is. At most `most` refused parts. */
export function Trouble({ plugin, most }: { plugin: Plugin; most: number }) {
  const { error, errorId, problems } = plugin.row;
  const advice = adviceText(plugin);
  if (!error && problems.length === 0 && !advice) return null;
  return (
    <div class="trouble">
      {error && (
        <p>
          {errorId && <b>{errorId}: </b>}
          {shown(error, LONGEST)}
        </p>
      )}
      {problems.length > 0 && (
        <ul>
          {problems.slice(0, most).map((problem) => (
            <li key={problem}>{shown(problem, LONGEST)}</li>
          ))}
          {problems.length > most && <li>and {problems.length - most} more</li>}
        </ul>
      )}
      <Remedy id={errorId} fallback={advice} />
    </div>
  );
}
