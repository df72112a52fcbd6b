import type { Summary } from "./results.ts";
import type { Row } from "./row.ts";

/** A goal of a row, and whether a result meets it. */
export interface Goal {
  text: string;
  isMet: boolean;
}

/** The goals of a row; none if it has none. */
export function goalsOf({ goal, limit, unit }: Row, { agent, ratio }: Summary): Goal[] {
  return [
    ...(goal === undefined ? [] : [{ text: `${goal}`, isMet: ratio <= goal }]),
    ...(limit === undefined ? [] : [{ text: `${limit} ${unit}`, isMet: agent <= limit }]),
  ];
}

/** A figure with three digits, and thousands in full. */
export function figureText(value: number): string {
  return value >= 1_000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}

/** A ratio with two decimals, or three if it is less than a tenth. */
export function ratioText(ratio: number): string {
  return ratio.toFixed(ratio < 0.1 ? 3 : 2);
}

/** Median, least and greatest ratio. */
export function ratiosText({ ratio, min, max, peerAtLeast }: Summary): string {
  return `${peerAtLeast ? "at most " : ""}${ratioText(ratio)} (${ratioText(min)} to ${ratioText(max)})`;
}
