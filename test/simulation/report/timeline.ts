import type { Outcome } from "../simulate.ts";

const MOST_BEFORE = 15;

/** One world as text: what was broken, what happened just before, and everything that happened. */
export function timelineOf({ seed, broken, events, digest, steps, virtualMs, plan }: Outcome): string {
  const lines = events.map(({ at, who, what }) => `${seconds(at)}  ${who.padEnd(14)} ${what}`);
  const verdict =
    broken.length === 0
      ? [`seed ${seed}: every rule was kept`]
      : [
          ...broken.map(({ promise, what }) => `seed ${seed}: broken: ${promise}\n    ${what}`),
          "",
          "The last events before it:",
          ...lines.slice(-MOST_BEFORE),
        ];
  return [
    ...lines,
    "",
    `plan ${JSON.stringify(plan)}`,
    ...verdict,
    `${Math.round(virtualMs / 1_000)} virtual seconds, ${steps} steps, digest ${digest}`,
  ].join("\n");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3).padStart(8)} s`;
}
