import { status } from "@grpc/grpc-js";
import { codeOf, messageOf } from "@nodekeeper/core/lib";

/** A call to which a fault may apply. */
export interface RuntimeCall {
  /** Such as "ListContainers". */
  method: string;
  /** ID of the requested container or sandbox, if any. */
  id: string | undefined;
  /** Of the pod whose container or sandbox is requested, or whose containers or sandboxes are listed. */
  podUid: string | undefined;
}

/** Fault of a call. `bytes` are sent as the response, valid or not. */
export type CallFault =
  | { delayMs: number }
  | { hang: true }
  | { code: status; message: string }
  | { bytes: Uint8Array };

/** Returns an error as a gRPC server sends it. */
export function refusal(code: status, message: string): Error {
  return Object.assign(new Error(message), { code, details: message });
}

export function unimplemented(method: string): Error {
  return refusal(status.UNIMPLEMENTED, `unknown method ${method} for service runtime.v1.RuntimeService`);
}

/** Converts an error to the response for the caller. */
export function serverError(error: unknown): { code: status; details: string } {
  if (error instanceof Error && "details" in error) return error as never;
  const code = codeOf(error);
  const details = messageOf(error);
  if (code === "notFound") return { code: status.NOT_FOUND, details };
  if (code === "stopped") return { code: status.UNAVAILABLE, details };
  return { code: status.UNKNOWN, details };
}
