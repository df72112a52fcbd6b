import type { ComponentChildren } from "preact";
import { addressOf } from "../address.ts";

/** The link to a round of eviction: what was read, and what was decided about each candidate. */
export function RoundLink({ id, children }: { id: number; children?: ComponentChildren }) {
  return <a href={addressOf("round", [String(id)])}>{children ?? `Round ${id}`}</a>;
}
