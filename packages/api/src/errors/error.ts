/**
 * Error codes. A code is the kind of failure, in terms that a caller can act on; the message states what failed and
 * where. gRPC and HTTP statuses are mapped to and from codes at the edges only.
 */
export const errorCodes = {
  invalid: "the input breaks a rule; retrying does not help",
  notFound: "the named object does not exist",
  conflict: "another client changed it, or owns it",
  forbidden: "the caller may not do this",
  unauthenticated: "the caller's credentials are missing, wrong or expired",
  throttled: "too many requests; retry later",
  unavailable: "the other side can't be reached or can't respond now",
  deadline: "no response within the deadline",
  expired: "the requested version is no longer kept; list again",
  unsupported: "the other side does not know this call, kind or version",
  exhausted: "a limit on size, number or rate was reached",
  corrupt: "stored data can't be read",
  stopped: "the component is stopping",
  internal: "a defect in Nodekeeper",
} as const;

export type ErrorCode = keyof typeof errorCodes;

/**
 * The stable id of an error that an operator can act on. docs/errors.md has the cause and remedy of each.
 */
export type ErrorId = `NK${number}`;

export interface ErrorDetails {
  /** Default: the cause's. */
  id?: ErrorId | undefined;
  cause?: unknown;
  /** Delay before the next attempt, milliseconds, if the other side requested one. */
  retryAfterMs?: number | undefined;
}

/** An error with a code, and an id if an operator can act on it. */
export class NodekeeperError extends Error {
  override readonly name = "NodekeeperError";
  readonly code: ErrorCode;
  readonly id: ErrorId | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.id = details.id ?? errorIdOf(details.cause);
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Returns the code of any thrown value: `stopped` for an abort, `internal` for an error of another library. */
export function codeOf(error: unknown): ErrorCode {
  if (error instanceof NodekeeperError) return error.code;
  if (error instanceof Error && error.name === "AbortError") return "stopped";
  return "internal";
}

/** Returns the id of any thrown value: its own or that of a cause; undefined if none has one. */
export function errorIdOf(error: unknown): ErrorId | undefined {
  if (error instanceof NodekeeperError) return error.id;
  return error instanceof Error ? errorIdOf(error.cause) : undefined;
}

/** Returns the message of any thrown value in one line, with its chain of causes. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  if (error.cause === undefined) return own;
  const cause = messageOf(error.cause);
  return own.includes(cause) ? own : `${own}: ${cause}`;
}

/** Like `messageOf`, preceded by the id if there is one: "NK1204: GET /api: ...". For output other than logs. */
export function messageWithId(error: unknown): string {
  const id = errorIdOf(error);
  return id === undefined ? messageOf(error) : `${id}: ${messageOf(error)}`;
}

/** Converts any thrown value to an Error, for APIs that require one. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/**
 * Returns the error itself if it is a NodekeeperError. Otherwise returns a NodekeeperError with its code and message,
 * and the given error as the cause.
 */
export function toNodekeeperError(error: unknown): NodekeeperError {
  if (error instanceof NodekeeperError) return error;
  return new NodekeeperError(codeOf(error), messageOf(error), { cause: error });
}
