import { NodekeeperError } from "@nodekeeper/core/lib";
import { formatCursor, type LogPosition, parseCursor } from "../../lifecycle/index.ts";

/** The positions of a stream. Undefined for topics that are not followed. */
export interface Positions {
  /** Position in the lifecycle event log. */
  events: LogPosition | undefined;
  /** Id of the last round. */
  rounds: number | undefined;
  /** Id of the last mark. */
  marks: number | undefined;
}

/**
 * Formats the `id` of a message, which a client sends to resume after it: "1a2b-17.42.7", with a hyphen for each topic
 * that is not followed.
 */
export function formatPositions({ events, rounds, marks }: Positions): string {
  return `${events ? formatCursor(events) : "-"}.${rounds ?? "-"}.${marks ?? "-"}`;
}

/** Throws `invalid`. */
export function parsePositions(text: string): Positions {
  const pattern = /^([0-9a-z]{1,32}-\d{1,15}|-)\.(\d{1,15}|-)\.(\d{1,15}|-)$/;
  const [, events, rounds, marks] = pattern.exec(text) ?? [];
  if (events === undefined)
    throw new NodekeeperError(
      "invalid",
      `${JSON.stringify(text.slice(0, 80))} is not a cursor of this stream`,
    );
  return {
    events: events === "-" ? undefined : parseCursor(events),
    rounds: rounds === "-" ? undefined : Number(rounds),
    marks: marks === "-" ? undefined : Number(marks),
  };
}
