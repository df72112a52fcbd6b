import { age, at } from "../text.ts";
import { useTicking } from "./ticker.ts";

/** A time of day, with the date where that is not today; the exact time, UTC, under the pointer. */
export function Time({ at: ms }: { at: number }) {
  const iso = isoOf(ms);
  return (
    <time dateTime={iso} title={iso}>
      {at(ms)}
    </time>
  );
}

/** How long ago something was, counting: "3 min ago"; with `bare`, "3 min". */
export function Age({ since, bare = false }: { since: number; bare?: boolean }) {
  const text = useTicking((now) => `${age(now - since)}${bare ? "" : " ago"}`);
  const iso = isoOf(since);
  return (
    <time dateTime={iso} title={iso}>
      {text}
    </time>
  );
}

/** How long until something happens, counting down: "in 42 s"; then `over`. */
export function Countdown({ until, over = "now" }: { until: number; over?: string }) {
  const text = useTicking((now) => (until > now ? `in ${age(until - now)}` : over));
  const iso = isoOf(until);
  return (
    <time dateTime={iso} title={iso}>
      {text}
    </time>
  );
}

// What a date can't be, as of a record that was changed by hand, has none.
function isoOf(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
