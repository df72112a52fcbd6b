import type { IncomingHttpHeaders } from "node:http";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { ResourcePath } from "./http/path.ts";

/** A request as passed to fault hooks and request logs. */
export interface RequestInfo {
  method: string;
  /** Path without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** Undefined for non-resource requests, such as discovery and health. */
  resource: ResourcePath | undefined;
}

/** What happens to a request instead of normal handling. */
export type Fault =
  /** Sends this response. A body that is an object is sent as JSON. */
  | { status: number; headers?: Record<string, string>; body?: unknown }
  /** Handles the request after this time, in milliseconds. */
  | { delayMs: number }
  /** Breaks the connection. */
  | "cut"
  /** Never responds. */
  | "hang";

/** A received request with its body, before it is handled. */
export interface ReceivedRequest extends RequestInfo {
  body: unknown;
}

/** Attributes of a SelfSubjectAccessReview. */
export interface AccessAttributes {
  verb?: string;
  group?: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

export interface DevApiServerOptions {
  /** Default 0: a free port, which is kept when the server is restarted. */
  port?: number;
  /** Loopback address. Default 127.0.0.1. Other addresses are rejected. */
  address?: string;
  clock: Clock;
  log: Logger;
  /** Directory of the SQLite database. Default: objects are kept in memory only. */
  dataDir?: string;
  /**
   * Bearer token that clients must send. Default: none, so that all users of this machine have full access. Not
   * suitable for kubectl, which does not send tokens over plain HTTP.
   */
  token?: string;
  /** Called for each request before authentication. A returned fault is applied to the request. */
  faults?: (request: RequestInfo) => Fault | undefined;
  /** Called for each authenticated request once its body is read. */
  onRequest?: (request: ReceivedRequest) => void;
  /** Called after `onRequest`, like an admission webhook. A returned fault is applied to the request. */
  admit?: (request: ReceivedRequest) => Fault | undefined;
  /** Decides SelfSubjectAccessReviews. Default: everything is allowed. */
  rules?: (attributes: AccessAttributes) => boolean;
  /**
   * Whether objects are validated against the schemas of their kinds. Default true. Set it to false for tests whose
   * objects have unknown fields.
   */
  checkFields?: boolean;
  /** Number of changes kept for watches, per kind. Default 10,000. */
  historyLimit?: number;
  /** A watch with more buffered bytes is closed. Default 32 MiB. */
  maxWatchBufferBytes?: number;
  /** Interval of bookmarks, in milliseconds. Default one minute. */
  bookmarkIntervalMs?: number;
  /**
   * Whether a terminating pod is removed at the end of its grace period, as if the kubelet had confirmed it. Default
   * true.
   */
  removePodsAfterGrace?: boolean;
}
