import { addressOf } from "../../address.ts";
import { fields } from "./fields.ts";

/** The state in the address: typed texts by field name, and the start of the replayed rounds. */
export interface WhatIf {
  readonly typed: ReadonlyMap<string, string>;
  /** Milliseconds since the epoch. Undefined: the last hour. */
  readonly since: number | undefined;
}

const SINCE = "since";
const LONGEST_TEXT = 4_096;

/** Parses the query of the address. Unknown parameters and texts longer than any value are ignored. */
export function readQuery(query: URLSearchParams): WhatIf {
  const typed = new Map<string, string>();
  for (const { name } of fields) {
    const text = query.get(name);
    if (text !== null && text.length <= LONGEST_TEXT) typed.set(name, text);
  }
  const since = query.get(SINCE) ?? "";
  return { typed, since: /^\d{1,16}$/.test(since) ? Number(since) : undefined };
}

/** Returns a shareable address of these changes. */
export function whatIfAddress({ typed, since }: WhatIf): string {
  return addressOf("what-if", [], { ...Object.fromEntries(typed), [SINCE]: since });
}
