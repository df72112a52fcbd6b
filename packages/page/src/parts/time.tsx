import { age, at } from "../text.ts";
import { useKnownTicking, useTicking } from "./ticker.ts";

/** A time of day, with the date if it is not today. The tooltip has the exact time in UTC. */
export function Time({ at: ms }: { at: number }) {
  return <Stamp ms={ms} text={at(ms)} />;
}

/** Time elapsed since an event, updated: "3 min ago". */
export function Age({ since }: { since: number }) {
  return <Stamp ms={since} text={useTicking((now) => `${age(now - since)} ago`)} />;
}

/** How long a state has lasted, updated: "3 min". */
export function Duration({ since }: { since: number }) {
  return <Stamp ms={since} text={useKnownTicking((now) => age(now - since))} />;
}

/** Time until an event, counting down: "in 42 s"; then `over`. */
export function Countdown({ until, over = "now" }: { until: number; over?: string }) {
  return (
    <Stamp ms={until} text={useKnownTicking((now) => (until > now ? `in ${age(until - now)}` : over))} />
  );
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
