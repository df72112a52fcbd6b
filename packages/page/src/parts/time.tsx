import { age, at } from "../text.ts";
import { useTicking } from "./ticker.ts";

/** A time of day, with the date if it is not today. The tooltip has the exact time in UTC. */
export function Time({ at: ms }: { at: number }) {
  const iso = isoOf(ms);
  return (
    <time dateTime={iso} title={iso}>
      {at(ms)}
    </time>
  );
}

/** Time elapsed since an event, updated: "3 min ago"; with `bare`, "3 min". */
export function Age({ since, bare = false }: { since: number; bare?: boolean }) {
  const text = useTicking((now) => `${age(now - since)}${bare ? "" : " ago"}`);
  const iso = isoOf(since);
  return (
    <time dateTime={iso} title={iso}>
      {text}
    </time>
  );
}

/** Time until an event, counting down: "in 42 s"; then `over`. */
export function Countdown({ until, over = "now" }: { until: number; over?: string }) {
  const text = useTicking((now) => (until > now ? `in ${age(until - now)}` : over));
  const iso = isoOf(until);
  return (
    <time dateTime={iso} title={iso}>
      {text}
    </time>
  );
}

// Empty if the value is not a valid date, for example in a manually edited record.
function isoOf(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
