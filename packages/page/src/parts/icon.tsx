// Each is drawn in a square of 16 by 16; shapes differ, so that a state is told apart without its color.
const shapes = {
  /** A check mark in a disk. */
  ok: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3.7 5.3-4.3 4.6a.8.8 0 0 1-1.2 0L4.3 8.8l1.1-1.1 1.4 1.5 3.8-4Z",
  /** A triangle with an exclamation mark. */
  warn: "M8 1.2a1 1 0 0 1 .9.5l6.4 11.6a1 1 0 0 1-.9 1.5H1.6a1 1 0 0 1-.9-1.5L7.1 1.7a1 1 0 0 1 .9-.5ZM7.2 5.5v4.2h1.6V5.5Zm0 5.4v1.6h1.6v-1.6Z",
  /** A cross in an octagon. */
  bad: "M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1Zm.4 3.4L4.4 5.5 6.9 8l-2.5 2.5 1.1 1.1L8 9.1l2.5 2.5 1.1-1.1L9.1 8l2.5-2.5-1.1-1.1L8 6.9Z",
  /** A ring. */
  quiet: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3Zm0 1.6a3.4 3.4 0 1 0 0 6.8 3.4 3.4 0 0 0 0-6.8Z",
  /** A triangle that points to the right: it acts. */
  live: "M4 2.2 13.5 8 4 13.8Z",
  /** An eye: it only looks. */
  dryRun:
    "M8 3c3.3 0 5.9 2 7.3 5-1.4 3-4 5-7.3 5S2.1 11 .7 8C2.1 5 4.7 3 8 3Zm0 1.6C5.6 4.6 3.6 5.9 2.5 8c1.1 2.1 3.1 3.4 5.5 3.4s4.4-1.3 5.5-3.4C12.4 5.9 10.4 4.6 8 4.6Zm0 1.2a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4Z",
  /** A magnifying glass. */
  search:
    "M6.5 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm0 1.6a3.9 3.9 0 1 1 0 7.8 3.9 3.9 0 0 1 0-7.8Zm4.8 7.6 3.6 3.6-1.1 1.1-3.6-3.6Z",
  /** A square: it stands still. */
  off: "M3 3h10v10H3Z",
} as const;

export type IconName = keyof typeof shapes;

/** A small picture beside a word, hidden from screen readers: the word says the same. */
export function Icon({ name, tone }: { name: IconName; tone?: "ok" | "warn" | "bad" | "quiet" }) {
  return (
    <svg class={tone ? `icon tone-${tone}` : "icon"} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={shapes[name]} fill-rule="evenodd" />
    </svg>
  );
}
