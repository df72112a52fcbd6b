import { droppedText, problemPlace } from "@nodekeeper/api/wording";
import type { ComponentChildren } from "preact";
import { shown } from "../../../text.ts";
import type { Driver, DriverClaims } from "./device-state.ts";

const LONGEST = 1_000;
const MOST = 100;

/** Problems of a driver other than its devices, each with its consequence. Empty if there are none. */
export function DriverTrouble({ driver, claims }: { driver: Driver; claims: DriverClaims | undefined }) {
  const { isRegistered, error, writeError, refused, foreign, dropped, problems, claimProblems = [] } = driver;
  const lines: ComponentChildren[] = [];
  if (!isRegistered)
    lines.push(
      "The driver is disconnected: its devices are tainted after devices.taintDelay, and its ResourceSlices deleted after devices.wipeDelay. Start it again.",
    );
  if (error) lines.push(`Stream: ${shown(error, LONGEST)}`);
  for (const problem of claimProblems)
    lines.push(
      [problem.errorId, shown(problemPlace(problem), 500), shown(problem.message, LONGEST)]
        .filter(Boolean)
        .join(": "),
    );
  if (claims?.problem && !claimProblems.some(({ message }) => message === claims.problem))
    lines.push(`Claims: ${shown(claims.problem, LONGEST)}`);
  if (writeError) lines.push(`ResourceSlices can't be written: ${shown(writeError, LONGEST)}`);
  for (const [slice, why] of Object.entries(refused))
    lines.push(`The API server refuses ResourceSlice ${shown(slice)}: ${shown(why, LONGEST)}`);
  for (const slice of foreign)
    lines.push(
      `ResourceSlice ${shown(slice)} is another client's in a pool of this driver: the scheduler may ignore the pool. Delete it, or give its pool another name.`,
    );
  for (const field of dropped) lines.push(`The API server does not store ${shown(droppedText(field), 500)}`);
  for (const { pool, device, field, message } of problems)
    if (device === undefined)
      lines.push(`Pool ${shown(pool)}: ${shown(field, 200)}: ${shown(message, LONGEST)}`);
  if (lines.length === 0) return null;
  return (
    <ul class="trouble">
      {lines.slice(0, MOST).map((line, place) => (
        <li key={place} class="failed">
          {line}
        </li>
      ))}
      {lines.length > MOST && <li>and {lines.length - MOST} more</li>}
    </ul>
  );
}
