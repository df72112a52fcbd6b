import { NodekeeperError } from "@nodekeeper/core/lib";

/** A place in a log: after the event of this sequence number. A log made anew has another id. */
export interface LogPosition {
  readonly log: string;
  readonly sequence: number;
}

/** The text of a position, for people and other programs. */
export function formatCursor({ log, sequence }: LogPosition): string {
  return `${log}-${sequence}`;
}

/** Throws `invalid` for what is no cursor. */
export function parseCursor(text: string): LogPosition {
  const match = /^([0-9a-z]{1,32})-([0-9]{1,15})$/.exec(text);
  if (!match)
    throw new NodekeeperError(
      "invalid",
      `${JSON.stringify(text.slice(0, 80))} is not a cursor of the event log`,
    );
  return { log: match[1]!, sequence: Number(match[2]) };
}
