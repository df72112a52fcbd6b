import { status } from "@grpc/grpc-js";
import { codeOf, messageOf } from "@nodekeeper/core/lib";

/** A call as a fault sees it. */
export interface RuntimeCall {
  /** "ListContainers" */
  method: string;
  /** Of the container or sandbox that is asked for, where it is one. */
  id: string | undefined;
  podUid: string | undefined;
}

/** The fault of a call. `bytes` are sent as the answer, whatever they are. */
export type CallFault =
  | { delayMs: number }
  | { hang: true }
  | { code: status; message: string }
  | { bytes: Uint8Array };

/** An error as a gRPC server sends it. */
export function refusal(code: status, message: string): Error {
  return Object.assign(new Error(message), { code, details: message });
}

export function unimplemented(method: string): Error {
  return refusal(status.UNIMPLEMENTED, `unknown method ${method} for service runtime.v1.RuntimeService`);
}

/** The caller's answer for an error that was thrown. */
export function serverError(error: unknown): { code: status; details: string } {
  if (error instanceof Error && "details" in error) return error as never;
  const code = codeOf(error);
  const details = messageOf(error);
  if (code === "notFound") return { code: status.NOT_FOUND, details };
  if (code === "stopped") return { code: status.UNAVAILABLE, details };
  return { code: status.UNKNOWN, details };
}
