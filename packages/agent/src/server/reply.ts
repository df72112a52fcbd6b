import { codeOf, type ErrorCode, errorIdOf, messageOf, requestedWaitOf } from "@nodekeeper/core/lib";

/** A complete response, before it is written. */
export interface Reply {
  status: number;
  contentType: string;
  body: string | Uint8Array;
  headers?: Record<string, string>;
}

/** Maps error codes to HTTP statuses. The only place that does. */
export const statusOfCode: Readonly<Record<ErrorCode, number>> = {
  invalid: 400,
  notFound: 404,
  conflict: 409,
  forbidden: 403,
  unauthenticated: 401,
  throttled: 429,
  unavailable: 503,
  deadline: 504,
  expired: 410,
  unsupported: 501,
  exhausted: 413,
  corrupt: 500,
  stopped: 503,
  internal: 500,
};

export function textReply(status: number, text: string): Reply {
  return { status, contentType: "text/plain; charset=utf-8", body: text.endsWith("\n") ? text : `${text}\n` };
}

export function jsonReply(status: number, value: unknown): Reply {
  return { status, contentType: "application/json", body: `${JSON.stringify(value ?? null)}\n` };
}

/**
 * { "error": { "code", "message" } } with the code's status, and "id" if the error has one.
 * @param retryAfterMs milliseconds; default: the error's own
 */
export function errorReply(error: unknown, retryAfterMs = requestedWaitOf(error)): Reply {
  const code = codeOf(error);
  const described = { code, id: errorIdOf(error), message: messageOf(error) };
  return withRetryAfter(jsonReply(statusOfCode[code], { error: described }), error, retryAfterMs);
}

/** Adds Retry-After if the delay is known. */
export function withRetryAfter(reply: Reply, error: unknown, retryAfterMs = requestedWaitOf(error)): Reply {
  if (retryAfterMs === undefined) return reply;
  return { ...reply, headers: { ...reply.headers, "Retry-After": String(Math.ceil(retryAfterMs / 1000)) } };
}

/** Adds the challenge that a 401 response requires: RFC 9110, 11.6.1. */
export function withChallenge(reply: Reply): Reply {
  if (reply.status !== 401) return reply;
  return { ...reply, headers: { ...reply.headers, "WWW-Authenticate": 'Bearer realm="nodekeeper"' } };
}
