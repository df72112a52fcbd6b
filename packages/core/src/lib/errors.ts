/**
 * The one catalogue of error codes. A code says what kind of thing went wrong, in terms a caller can act on;
 * the message says what and where. gRPC and HTTP statuses are mapped to and from codes at the edges only.
 */
export const errorCodes = {
  invalid: "the input breaks a rule; trying again does not help",
  notFound: "the thing named does not exist",
  conflict: "somebody else changed it, or owns it",
  forbidden: "the caller may not do this",
  unauthenticated: "the caller's credentials are missing, wrong or expired",
  throttled: "told to come back later",
  unavailable: "the other side can't be reached or can't answer now",
  deadline: "no answer within the deadline",
  gone: "the version asked for is no longer kept; list again",
  unsupported: "the other side does not know this call, kind or version",
  exhausted: "a limit on size, number or rate was reached",
  corrupt: "stored data can't be read",
  stopped: "the part was asked to stop",
  internal: "a defect of ours",
} as const;

export type ErrorCode = keyof typeof errorCodes;

export interface ErrorDetails {
  cause?: unknown;
  /** How long to wait before the next try, milliseconds, where the other side said so. */
  retryAfterMs?: number;
}

/** An error with a code of the catalogue. */
export class NodekeeperError extends Error {
  override readonly name = "NodekeeperError";
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** The code of any thrown value; what is not ours is `internal`, an abort is `stopped`. */
export function codeOf(error: unknown): ErrorCode {
  if (error instanceof NodekeeperError) return error.code;
  if (error instanceof Error && error.name === "AbortError") return "stopped";
  return "internal";
}

/** One line that says what any thrown value is, with its chain of causes. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  if (error.cause === undefined) return own;
  const cause = messageOf(error.cause);
  return own.includes(cause) ? own : `${own}: ${cause}`;
}

/** Makes an Error of any thrown value, for APIs that want one. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The error itself where it is of the catalogue, else one of the same code and message, with it as the cause. */
export function toNodekeeperError(error: unknown): NodekeeperError {
  if (error instanceof NodekeeperError) return error;
  return new NodekeeperError(codeOf(error), messageOf(error), { cause: error });
}
