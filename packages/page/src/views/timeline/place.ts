import { addressOf } from "../../address.ts";
import { NARROWEST_MS, type Range, WIDEST_MS } from "./scale.ts";

/** The selected item, as written in the address. */
export type Selection =
  | { kind: "mark"; id: number }
  | { kind: "pod"; uid: string }
  | { kind: "container"; uid: string; id: string }
  | { kind: "reading"; plugin: string; scope: string; at: number };

/** The part of the timeline that an address selects. */
export interface Place {
  /** Undefined: the last minutes, moving with the time. */
  range: Range | undefined;
  selection: Selection | undefined;
}

/** Parses "from=…&to=…&at=…". Malformed parameters are ignored. */
export function readPlace(query: URLSearchParams): Place {
  const [from, to] = [query.get("from"), query.get("to")].map((text) =>
    /^\d{1,15}$/.test(text ?? "") ? Number(text) : 0,
  );
  const isRange = from! > 0 && to! - from! >= NARROWEST_MS && to! - from! <= WIDEST_MS;
  return {
    range: isRange ? { from: from!, to: to! } : undefined,
    selection: readSelection(query.get("at") ?? ""),
  };
}

export function placeAddress({ range, selection }: Place): string {
  return addressOf("timeline", [], {
    from: range?.from,
    to: range?.to,
    at: selection && writeSelection(selection),
  });
}

// Names may contain anything except control characters, so parts are separated by one, which URLs escape.
const SEPARATOR = "\n";

function writeSelection(selection: Selection): string {
  switch (selection.kind) {
    case "mark":
      return `mark:${selection.id}`;
    case "pod":
      return `pod:${selection.uid}`;
    case "container":
      return `container:${[selection.uid, selection.id].join(SEPARATOR)}`;
    case "reading":
      return `reading:${[selection.at, selection.plugin, selection.scope].join(SEPARATOR)}`;
  }
}

function readSelection(text: string): Selection | undefined {
  const colon = text.indexOf(":");
  const [first = "", second, third] = text.slice(colon + 1).split(SEPARATOR);
  switch (text.slice(0, Math.max(colon, 0))) {
    case "mark":
      return /^\d{1,15}$/.test(first) ? { kind: "mark", id: Number(first) } : undefined;
    case "pod":
      return first ? { kind: "pod", uid: first } : undefined;
    case "container":
      return first && second ? { kind: "container", uid: first, id: second } : undefined;
    case "reading":
      return second !== undefined && third !== undefined && Number(first) > 0
        ? { kind: "reading", at: Number(first), plugin: second, scope: third }
        : undefined;
    default:
      return undefined;
  }
}
