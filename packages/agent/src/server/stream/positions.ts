import { NodekeeperError } from "@nodekeeper/core/lib";
import { formatCursor, type LogPosition, parseCursor } from "../../lifecycle/index.ts";

/** How far a stream has been sent. */
export interface Positions {
  /** Of lifecycle events; undefined where they are not followed. */
  events: LogPosition | undefined;
  /** The id of the last round; undefined where rounds are not followed. */
  rounds: number | undefined;
}

/** The `id` of a message: what a client sends to continue after it. "1a2b-17.42", with a hyphen for what is not followed. */
export function formatPositions({ events, rounds }: Positions): string {
  return `${events ? formatCursor(events) : "-"}.${rounds ?? "-"}`;
}

/** Throws `invalid`. */
export function parsePositions(text: string): Positions {
  const [, events, rounds] = /^([0-9a-z]{1,32}-\d{1,15}|-)\.(\d{1,15}|-)$/.exec(text) ?? [];
  if (events === undefined || rounds === undefined)
    throw new NodekeeperError(
      "invalid",
      `${JSON.stringify(text.slice(0, 80))} is not a cursor of this stream`,
    );
  return {
    events: events === "-" ? undefined : parseCursor(events),
    rounds: rounds === "-" ? undefined : Number(rounds),
  };
}
