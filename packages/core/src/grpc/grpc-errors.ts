import { ClientError, ServerError, Status } from "nice-grpc";
import { codeOf, type ErrorCode, messageOf, NodekeeperError } from "../lib/index.ts";

/** Trailer of failed calls to the agent's services: the error's ID (NK1408), if it has one. */
export const errorIdTrailer = "nodekeeper-error-id";

const longestDetails = 500;
// grpc-js appends this to every connection failure, even if the note is empty.
const emptyNote = / Resolution note: $/;

const codes: Partial<Record<Status, ErrorCode>> = {
  [Status.UNIMPLEMENTED]: "unsupported",
  [Status.RESOURCE_EXHAUSTED]: "exhausted",
  [Status.DEADLINE_EXCEEDED]: "deadline",
  [Status.INVALID_ARGUMENT]: "invalid",
  [Status.NOT_FOUND]: "notFound",
};

/**
 * Converts the error of a failed call to codes of the catalog: `unsupported` (not implemented), `exhausted` (too
 * large), `deadline`, `invalid`, `notFound`, otherwise `unavailable`. The server's message is truncated to 500
 * characters. Errors that are not gRPC errors, such as the reason of an abort, are returned unchanged.
 */
export function fromGrpcError(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  const details = error.details.replace(emptyNote, "").slice(0, longestDetails) || Status[error.code];
  return new NodekeeperError(codes[error.code] ?? "unavailable", details);
}

// Of @grpc/grpc-js, for a call that ended while there was no connection to send it on.
const UNSENT = "No connection established";

/** Returns whether an error proves that the server never received the call. */
export function isUnsent(error: unknown): boolean {
  return codeOf(error) === "unavailable" && messageOf(error).includes(UNSENT);
}

const statuses: Record<ErrorCode, Status> = {
  invalid: Status.INVALID_ARGUMENT,
  notFound: Status.NOT_FOUND,
  conflict: Status.ABORTED,
  forbidden: Status.PERMISSION_DENIED,
  unauthenticated: Status.UNAUTHENTICATED,
  throttled: Status.RESOURCE_EXHAUSTED,
  unavailable: Status.UNAVAILABLE,
  deadline: Status.DEADLINE_EXCEEDED,
  expired: Status.OUT_OF_RANGE,
  unsupported: Status.UNIMPLEMENTED,
  exhausted: Status.RESOURCE_EXHAUSTED,
  corrupt: Status.DATA_LOSS,
  stopped: Status.UNAVAILABLE,
  internal: Status.INTERNAL,
};

/**
 * Returns the gRPC error with which a service responds if its handler throws. The message is truncated to 500
 * characters.
 */
export function toServerError(error: unknown): ServerError {
  // It is sent as a header, whose size is limited. grpc-js throws for half of a surrogate pair.
  const details = messageOf(error).slice(0, longestDetails).toWellFormed();
  return new ServerError(statuses[codeOf(error)], details);
}
