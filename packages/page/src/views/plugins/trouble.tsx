import { Remedy } from "../../parts/remedy.tsx";
import { shown } from "../../text.ts";
import { isBroken, type Plugin } from "./groups.ts";
import { adviceText, stateText } from "./words.ts";

const LONGEST = 1_000;

/** Problems of a plugin and their remedies. Empty if there are none. Shows at most `most` refused parts. */
export function Trouble({ plugin, most }: { plugin: Plugin; most: number }) {
  const { error, errorId, problems } = plugin.row;
  const advice = adviceText(plugin);
  const others = plugin.others.filter(isBroken);
  if (!error && problems.length === 0 && others.length === 0 && !advice) return null;
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
      {others.map((row) => (
        <div key={row.registrationSocket}>
          <p>
            Socket {shown(row.registrationSocket ?? "")}: {stateText(row)}
            {row.error && `: ${shown(row.error, LONGEST)}`}
          </p>
          <Remedy id={row.errorId} fallback={adviceText({ row })} />
        </div>
      ))}
    </div>
  );
}
