import { age, at } from "../text.ts";
import { useTicking } from "./ticker.ts";

/** A time of day, with the date if it is not today. The tooltip has the exact time in UTC. */
export function Time({ at: ms }: { at: number }) {
  return <Stamp ms={ms} text={at(ms)} />;
}

/** Time elapsed since an event, updated: "3 min ago"; with `bare`, "3 min". */
export function Age({ since, bare = false }: { since: number; bare?: boolean }) {
  return <Stamp ms={since} text={useTicking((now) => `${age(now - since)}${bare ? "" : " ago"}`)} />;
}

/** Time until an event, counting down: "in 42 s"; then `over`. */
export function Countdown({ until, over = "now" }: { until: number; over?: string }) {
  return <Stamp ms={until} text={useTicking((now) => (until > now ? `in ${age(until - now)}` : over))} />;
}

function Stamp({ ms, text }: { ms: number; text: string }) {
  const date = new Date(ms);
  // Empty if the value is not a valid date, for example in a manually edited record.
  const iso = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  return (
    <time dateTime={iso} title={iso}>
      {text}
    </time>
  );
}
