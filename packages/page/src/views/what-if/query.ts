import { addressOf } from "../../address.ts";
import { fields } from "./fields.ts";

/** What the address has: typed texts by the names of their fields, and since when rounds are replayed. */
export interface WhatIf {
  readonly typed: ReadonlyMap<string, string>;
  /** Milliseconds since the epoch; undefined for the last hour. */
  readonly since: number | undefined;
}

const SINCE = "since";
const LONGEST_TEXT = 4_096;

/** Reads the query of the address. Members that there are not, and texts longer than any value, are left out. */
export function readQuery(query: URLSearchParams): WhatIf {
  const typed = new Map<string, string>();
  for (const { name } of fields) {
    const text = query.get(name);
    if (text !== null && text.length <= LONGEST_TEXT) typed.set(name, text);
  }
  const since = query.get(SINCE) ?? "";
  return { typed, since: /^\d{1,16}$/.test(since) ? Number(since) : undefined };
}

/** The address of these changes, which can be sent. */
export function whatIfAddress({ typed, since }: WhatIf): string {
  return addressOf("what-if", [], { ...Object.fromEntries(typed), [SINCE]: since });
}
