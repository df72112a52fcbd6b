import type { ComponentChildren } from "preact";
import { addressOf } from "../address.ts";

/** A link to an eviction round: what was read, and what was decided about each candidate. */
export function RoundLink({ id, children }: { id: number; children?: ComponentChildren }) {
  return <a href={addressOf("round", [String(id)])}>{children ?? `Round ${id}`}</a>;
}
