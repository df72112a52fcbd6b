import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, type ErrorId, messageOf, NodekeeperError } from "../lib/index.ts";
import { isRecord } from "./objects.ts";
import { redactSecrets } from "./redact.ts";

// A longer Retry-After is taken for a mistake of the server.
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

// kube-apiserver answers an apply whose body does not fit the kind's schema with 500, as if the server had failed:
// https://github.com/kubernetes/kubernetes/issues/122480
const misfit = /^failed to create typed patch object/;

// etcd's refusal of an object beyond --max-request-bytes reaches the client as an internal error, and so does gRPC's
// where the limit is higher than its own.
const tooLarge = /request is too large|trying to send message larger than max/;

/** The code of an HTTP status that is not a success, by the message of its Status object too. */
export function codeOfStatus(status: number, message = ""): ErrorCode {
  if (status === 500 && misfit.test(message)) return "invalid";
  if (status === 500 && tooLarge.test(message)) return "exhausted";
  const known = codesByStatus[status];
  if (known) return known;
  return status >= 400 && status < 500 ? "invalid" : "unavailable";
}

// What an operator can do about a refusal. What is not found is often no error: its callers know.
const idsByCode: Readonly<Partial<Record<ErrorCode, ErrorId>>> = {
  unauthenticated: "NK1206",
  forbidden: "NK1207",
  throttled: "NK1209",
  invalid: "NK1210",
  exhausted: "NK1211",
  conflict: "NK1214",
  unavailable: "NK1204",
};

/** One cause in the details of a Status: `{ reason: "DisruptionBudget", message: "The disruption budget web needs..." }`. */
export interface StatusCause {
  reason: string;
  message: string;
}

/** The fields of a Status object besides its message. Texts are empty where it has none. */
export interface StatusSummary {
  /** "NotFound", "Conflict", ... */
  reason: string;
  /** The plural name of the resource it is about: "pods". */
  kind: string;
  /** The name of the object it is about. */
  name: string;
  causes: readonly StatusCause[];
}

/** The API server's own refusal, as a Status object; an answer of a proxy is a plain NodekeeperError. */
export class ApiStatusError extends NodekeeperError {
  /** The HTTP status. */
  readonly httpStatus: number;
  readonly summary: StatusSummary;

  constructor(code: ErrorCode, message: string, answer: ApiStatus, retryAfterMs: number | undefined) {
    super(code, message, { id: idsByCode[code], ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
    this.httpStatus = answer.httpStatus;
    this.summary = answer.summary;
  }
}

interface ApiStatus {
  httpStatus: number;
  summary: StatusSummary;
}

/** An answer whose status is not a success. */
export interface FailedAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/**
 * The error for an answer that is not a success. A Status object gives its message. A page of HTML comes from some
 * proxy on the way, not from the API server, so its status is not about the object: it is `unavailable`.
 * @param what method and path
 * @param now wall time, milliseconds, for a Retry-After that is a date
 */
export function errorOfAnswer(what: string, answer: FailedAnswer, now: number): NodekeeperError {
  const { status, headers, body } = answer;
  const parsed = parseStatus(body);
  const retryAfterMs = retryAfterOf(headers["retry-after"], now) ?? parsed?.retryAfterMs;
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
  return new NodekeeperError(code, `${what}: ${status}${target}: ${excerpt(headers["content-type"], body)}`, {
    id: "NK1213",
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** The error for a success whose body is not the JSON it should be. */
export function notJson(what: string, answer: FailedAnswer): NodekeeperError {
  const shown = excerpt(answer.headers["content-type"], answer.body);
  return new NodekeeperError(
    "unavailable",
    `${what}: ${answer.status} with a body that is not JSON: ${shown}`,
    { id: "NK1213" },
  );
}

/** The error for a request that got no answer: refused, reset, not trusted. */
export function errorOfSocket(what: string, source: string, error: unknown): NodekeeperError {
  if (error instanceof NodekeeperError) return error;
  const isUntrusted = isTrustProblem(error);
  const hint = isUntrusted ? ` (server certificate checked with the authorities of ${source})` : "";
  return new NodekeeperError("unavailable", `${what}: ${describeSocketError(error)}${hint}`, {
    id: isUntrusted ? "NK1205" : "NK1204",
    cause: error,
  });
}

/** Whether the TLS handshake failed over a certificate. */
export function isTrustProblem(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /CERT|SIGNATURE|ISSUER|ERR_TLS|ERR_SSL/.test(code);
}

/** The error of a Status object, as it comes in a watch's ERROR event. */
export function errorOfStatusObject(what: string, status: unknown): NodekeeperError {
  const fields = isRecord(status) ? status : {};
  const code = typeof fields.code === "number" ? fields.code : 500;
  const message = typeof fields.message === "string" ? fields.message : "no message";
  const retryAfterMs = retryAfterOfStatus(fields);
  const errorCode = codeOfStatus(code);
  return new NodekeeperError(errorCode, `${what}: ${code}: ${redactSecrets(message)}`, {
    id: idsByCode[errorCode],
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Retry-After as milliseconds from `now`: seconds or an HTTP date (RFC 9110, 10.2.3); undefined where it is neither. */
export function retryAfterOf(value: string | undefined, now: number): number | undefined {
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
  const details = isRecord(status.details) ? status.details : {};
  const causes = Array.isArray(details.causes) ? details.causes.filter(isRecord) : [];
  return {
    reason: textOf(status.reason),
    kind: textOf(details.kind),
    name: textOf(details.name),
    causes: causes.map(({ reason, message }) => ({ reason: textOf(reason), message: textOf(message) })),
  };
}

// Without user, password and query, which may be secrets.
function originOf(location: string): string {
  const url = URL.parse(location, "http://server.invalid");
  if (!url) return "no URL";
  const origin = url.hostname === "server.invalid" ? "" : url.origin;
  return `${origin}${url.pathname}`.slice(0, EXCERPT_CHARACTERS);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function looksLikeHtml(contentType: string | undefined, body: string): boolean {
  return /html/i.test(contentType ?? "") || /^\s*</.test(body);
}

function excerpt(contentType: string | undefined, body: string): string {
  const start = body.slice(0, EXCERPT_CHARACTERS).replace(/\s+/g, " ").trim();
  return `${contentType ?? "no content type"}: ${JSON.stringify(start)}`;
}

// Node tries every address of a name; the error of all of them together has no message of its own.
function describeSocketError(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return messageOf(error);
}
