/** Result of an export request. */
export type Delivery =
  | {
      kind: "accepted";
      /** Number of records that the receiver rejected for good. */
      rejected: number;
      /** Why it rejected them, or a warning; empty for none. */
      message: string;
    }
  /** The same request may be accepted later. */
  | { kind: "unavailable"; message: string; retryAfterMs: number }
  /** The receiver rejected the agent rather than the records (wrong token or protocol), or failed itself. */
  | { kind: "denied"; message: string }
  /** The receiver has no service for the signal, or none at this path. */
  | { kind: "unsupported"; message: string }
  | { kind: "tooLarge"; message: string }
  /** The receiver can't process these records. */
  | { kind: "refused"; message: string };

/** An encoded request. */
export interface OtlpRequest {
  signal: "logs" | "traces";
  body: Uint8Array;
}

/** Sends requests to a collector. */
export interface Transport extends Disposable {
  /** Never rejects, except with the signal's reason. */
  send(request: OtlpRequest, signal: AbortSignal): Promise<Delivery>;
}

const LONGEST_MESSAGE = 500;

/** Returns the first line of a receiver's text, at most 500 characters. */
export function shortened(text: string): string {
  return (text.trim().split("\n", 1)[0] ?? "").slice(0, LONGEST_MESSAGE);
}
