import { ClientError, ServerError, Status } from "nice-grpc";
import { codeOf, type ErrorCode, messageOf, NodekeeperError } from "../lib/index.ts";

const longestDetails = 500;
// grpc-js adds this to every failed connection, also when there is nothing to note.
const emptyNote = / Resolution note: $/;

const codes: Partial<Record<Status, ErrorCode>> = {
  [Status.UNIMPLEMENTED]: "unsupported",
  [Status.RESOURCE_EXHAUSTED]: "exhausted",
  [Status.DEADLINE_EXCEEDED]: "deadline",
  [Status.INVALID_ARGUMENT]: "invalid",
  [Status.NOT_FOUND]: "notFound",
};

/**
 * What a failed call means, in codes of the catalogue: `unsupported` (no such call), `exhausted` (too
 * large), `deadline`, `invalid`, `notFound`, else `unavailable`. The server's own words are cut at 500 characters.
 * What is no gRPC error, such as an abort's reason, is given back as it is.
 */
export function fromGrpcError(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  const details = error.details.replace(emptyNote, "").slice(0, longestDetails) || Status[error.code];
  return new NodekeeperError(codes[error.code] ?? "unavailable", details);
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

/** What a service of ours answers when its work threw: the catalogue's codes as gRPC statuses. */
export function toServerError(error: unknown): ServerError {
  return new ServerError(statuses[codeOf(error)], messageOf(error));
}
