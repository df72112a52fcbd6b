import { ClientError, Status } from "nice-grpc";
import { type ErrorCode, NodekeeperError } from "../lib/index.ts";

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
export function fromGrpcError(thrown: unknown): unknown {
  if (!(thrown instanceof ClientError)) return thrown;
  const details = thrown.details.replace(emptyNote, "").slice(0, longestDetails) || Status[thrown.code];
  return new NodekeeperError(codes[thrown.code] ?? "unavailable", details);
}
