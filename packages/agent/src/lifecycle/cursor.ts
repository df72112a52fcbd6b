import { NodekeeperError } from "@nodekeeper/core/lib";

/**
 * Position in an event log, after the event with this sequence number. A recreated log has a different ID.
 */
export interface LogPosition {
  readonly log: string;
  readonly sequence: number;
}

/**
 * Position in no log: reading after it starts with a snapshot. For consumers created before the log is
 * restored.
 */
export const beforeAnyLog: LogPosition = { log: "0", sequence: 0 };

/** Formats a position as a cursor for clients. */
export function formatCursor({ log, sequence }: LogPosition): string {
  return `${log}-${sequence}`;
}

/** Parses a cursor. Throws `invalid` if it is malformed. */
export function parseCursor(text: string): LogPosition {
  const match = /^([0-9a-z]{1,32})-([0-9]{1,15})$/.exec(text);
  if (!match)
    throw new NodekeeperError(
      "invalid",
      `${JSON.stringify(text.slice(0, 80))} is not a cursor of the event log`,
    );
  return { log: match[1]!, sequence: Number(match[2]) };
}
