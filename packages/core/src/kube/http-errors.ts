import type { IncomingHttpHeaders } from "node:http";
import {
  AnswerNotOfKubernetes,
  ApiServerNotTrusted,
  ApiServerUnreachable,
  CredentialsNotAccepted,
  ObjectChanged,
  ObjectInvalid,
  ObjectTooLarge,
  RequestForbidden,
  RequestsThrottled,
} from "@nodekeeper/api/errors";
import { type ErrorCode, type ErrorId, messageOf, NodekeeperError } from "../lib/index.ts";
import { isRecord, recordOf, recordsOf, textOf } from "./objects.ts";
import { redactSecrets } from "./redact.ts";

// Longer Retry-After values are considered a mistake of the server and truncated.
const LONGEST_RETRY_AFTER_MS = 3_600_000;
const EXCERPT_CHARACTERS = 200;

const codesByStatus: Readonly<Record<number, ErrorCode>> = {
  400: "invalid",
  401: "unauthenticated",
  403: "forbidden",
  404: "notFound",
  405: "unsupported",
  406: "unsupported",
  408: "unavailable",
  409: "conflict",
  410: "expired",
  412: "conflict",
  413: "exhausted",
  415: "unsupported",
  422: "invalid",
  429: "throttled",
};

// kube-apiserver responds with 500 to an apply whose body does not match the kind's schema:
// https://github.com/kubernetes/kubernetes/issues/122480
const misfit = /^failed to create typed patch object/;

// If an object exceeds etcd's --max-request-bytes, or gRPC's limit if that is lower, clients receive an internal error.
const tooLarge = /request is too large|trying to send message larger than max/;

/** Returns the code of an unsuccessful HTTP status. Takes the message of its Status object into account. */
export function codeOfStatus(status: number, message = ""): ErrorCode {
  if (status === 500 && misfit.test(message)) return "invalid";
  if (status === 500 && tooLarge.test(message)) return "exhausted";
  const known = codesByStatus[status];
  if (known) return known;
  return status >= 400 && status < 500 ? "invalid" : "unavailable";
}

// Errors on which operators can act. notFound is omitted, because it is often expected by the caller.
const idsByCode: Readonly<Partial<Record<ErrorCode, ErrorId>>> = {
  unauthenticated: CredentialsNotAccepted.id,
  forbidden: RequestForbidden.id,
  throttled: RequestsThrottled.id,
  invalid: ObjectInvalid.id,
  exhausted: ObjectTooLarge.id,
  conflict: ObjectChanged.id,
  unavailable: ApiServerUnreachable.id,
};

/**
 * A cause in the details of a Status: `{ reason: "DisruptionBudget", message: "The disruption budget web needs..." }`.
 */
export interface StatusCause {
  reason: string;
  message: string;
}

/** Fields of a Status object other than its message. Absent texts are empty. */
export interface StatusSummary {
  /** Such as "NotFound" or "Conflict". */
  reason: string;
  /** Plural name of the resource: "pods". */
  kind: string;
  /** Name of the object. */
  name: string;
  causes: readonly StatusCause[];
}

/**
 * The API server rejected a request with a Status object. Other responses, such as those of proxies, are
 * AnswerNotOfKubernetes.
 */
export class ApiStatusError extends NodekeeperError {
  /** The HTTP status. */
  readonly httpStatus: number;
  readonly summary: StatusSummary;

  constructor(code: ErrorCode, message: string, answer: ApiStatus, retryAfterMs: number | undefined) {
    super(code, message, { id: idsByCode[code], retryAfterMs });
    this.httpStatus = answer.httpStatus;
    this.summary = answer.summary;
  }
}

interface ApiStatus {
  httpStatus: number;
  summary: StatusSummary;
}

/** A response with an unsuccessful status. */
export interface FailedAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/**
 * Returns the error for an unsuccessful response, with the message of its Status object if there is one. HTML
 * originates from a proxy, not from the API server, so its status does not refer to the object: the error is
 * `unavailable`.
 * @param what method and path
 * @param now wall clock milliseconds, for a Retry-After that is a date
 */
export function errorOfAnswer(what: string, answer: FailedAnswer, now: number): NodekeeperError {
  const { status, headers, body } = answer;
  const parsed = parseStatus(body);
  const retryAfterMs = parseRetryAfter(headers["retry-after"], now) ?? parsed?.retryAfterMs;
  if (parsed) {
    const { message, summary } = parsed;
    const text = message ? `${what}: ${status}: ${message}` : `${what}: ${status}`;
    return new ApiStatusError(
      codeOfStatus(status, message),
      text,
      { httpStatus: status, summary },
      retryAfterMs,
    );
  }
  const code = looksLikeHtml(headers["content-type"], body) ? "unavailable" : codeOfStatus(status);
  const target = headers.location ? ` to ${originOf(headers.location)} (not followed)` : "";
  return new AnswerNotOfKubernetes(
    { request: what, problem: `${status}${target}: ${excerpt(headers["content-type"], body)}` },
    { retryAfterMs, code },
  );
}

/** Returns the error for a successful response whose body is not JSON. */
export function notJson(what: string, answer: FailedAnswer): NodekeeperError {
  const shown = excerpt(answer.headers["content-type"], answer.body);
  return new AnswerNotOfKubernetes({
    request: what,
    problem: `${answer.status} with a body that is not JSON: ${shown}`,
  });
}

/** Returns the error for a request without a response: refused, reset, or not trusted. */
export function errorOfSocket(what: string, source: string, error: unknown): NodekeeperError {
  if (error instanceof NodekeeperError) return error;
  const isUntrusted = isTrustProblem(error);
  const hint = isUntrusted ? ` (server certificate checked with the authorities of ${source})` : "";
  const Failure = isUntrusted ? ApiServerNotTrusted : ApiServerUnreachable;
  return new Failure({ problem: `${what}: ${describeSocketError(error)}${hint}` }, { cause: error });
}

/** Returns whether the TLS handshake failed because of a certificate. */
export function isTrustProblem(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /CERT|SIGNATURE|ISSUER|ERR_TLS|ERR_SSL/.test(code);
}

/** Returns the error for the Status object of a watch's ERROR event. */
export function errorOfStatusObject(what: string, status: unknown): NodekeeperError {
  const fields = recordOf(status);
  const code = typeof fields.code === "number" ? fields.code : 500;
  const message = typeof fields.message === "string" ? fields.message : "no message";
  const retryAfterMs = retryAfterOfStatus(fields);
  const errorCode = codeOfStatus(code);
  return new NodekeeperError(errorCode, `${what}: ${code}: ${redactSecrets(message)}`, {
    id: idsByCode[errorCode],
    retryAfterMs,
  });
}

/**
 * Returns Retry-After as milliseconds from `now`: seconds or an HTTP date (RFC 9110, 10.2.3). Undefined if it is
 * neither.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}

function retryAfterOfStatus(status: Readonly<Record<string, unknown>>): number | undefined {
  const seconds = isRecord(status.details) ? status.details.retryAfterSeconds : undefined;
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS);
}

interface ParsedStatus {
  message: string;
  retryAfterMs: number | undefined;
  summary: StatusSummary;
}

function parseStatus(body: string): ParsedStatus | undefined {
  let status: unknown;
  try {
    status = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isRecord(status)) return undefined;
  return {
    message: textOf(status.message),
    retryAfterMs: retryAfterOfStatus(status),
    summary: summaryOf(status),
  };
}

function summaryOf(status: Readonly<Record<string, unknown>>): StatusSummary {
  const details = recordOf(status.details);
  const causes = recordsOf(details.causes);
  return {
    reason: textOf(status.reason),
    kind: textOf(details.kind),
    name: textOf(details.name),
    causes: causes.map(({ reason, message }) => ({ reason: textOf(reason), message: textOf(message) })),
  };
}

// Omits user, password and query, which may be secrets.
function originOf(location: string): string {
  const url = URL.parse(location, "http://server.invalid");
  if (!url) return "no URL";
  const origin = url.hostname === "server.invalid" ? "" : url.origin;
  return `${origin}${url.pathname}`.slice(0, EXCERPT_CHARACTERS);
}

function looksLikeHtml(contentType: string | undefined, body: string): boolean {
  return /html/i.test(contentType ?? "") || /^\s*</.test(body);
}

function excerpt(contentType: string | undefined, body: string): string {
  const start = body.slice(0, EXCERPT_CHARACTERS).replace(/\s+/g, " ").trim();
  return `${contentType ?? "no content type"}: ${JSON.stringify(start)}`;
}

// Node tries all addresses of a name. The resulting AggregateError has no message.
function describeSocketError(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return messageOf(error);
}
