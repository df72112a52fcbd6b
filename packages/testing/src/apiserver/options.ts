import type { IncomingHttpHeaders } from "node:http";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { ResourcePath } from "./http/path.ts";

/** A request as fault hooks and request logs see it. */
export interface RequestInfo {
  method: string;
  /** The path without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** What the path names; undefined for discovery, health and the like. */
  resource: ResourcePath | undefined;
}

/** What to do to a request instead of handling it. */
export type Fault =
  /** Answer this. An object as body is sent as JSON. */
  | { status: number; headers?: Record<string, string>; body?: unknown }
  /** Handle it, but only after this time, milliseconds. */
  | { delayMs: number }
  /** Break the connection. */
  | "cut"
  /** Never answer. */
  | "hang";

/** A request that was received, with its body, just before it is handled. */
export interface ReceivedRequest extends RequestInfo {
  body: unknown;
}

/** What a SelfSubjectAccessReview asks for. */
export interface AccessAttributes {
  verb?: string;
  group?: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

export interface DevApiServerOptions {
  /** 0, the default: a free one, kept over stop and start. */
  port?: number;
  /** A loopback address; 127.0.0.1 by default. Any other is refused. */
  address?: string;
  clock: Clock;
  log: Logger;
  /** Where objects are kept in SQLite; in memory only without it. */
  dataDir?: string;
  /**
   * The bearer token that clients must send. Without it all users of this machine may do everything. Not for
   * kubectl: it never sends a token over plain HTTP.
   */
  token?: string;
  /** Called for each request before anything else; what it returns is done to the request. */
  faults?: (request: RequestInfo) => Fault | undefined;
  /** Called for each request that is about to be handled. */
  onRequest?: (request: ReceivedRequest) => void;
  /** Called after it, as an admission webhook is: what it returns is done to the request. */
  admit?: (request: ReceivedRequest) => Fault | undefined;
  /** Answers SelfSubjectAccessReviews; everything is allowed without it. */
  rules?: (attributes: AccessAttributes) => boolean;
  /**
   * Whether objects are checked against the schemas of their kinds. Default true; false for tests whose objects have fields
   * that no kind has.
   */
  checkFields?: boolean;
  /** Changes kept for watches, per kind. Default 10,000. */
  historyLimit?: number;
  /** A watcher that has more than this waiting is cut. Default 32 MiB. */
  maxWatchBufferBytes?: number;
  /** Milliseconds between bookmarks. Default one minute. */
  bookmarkIntervalMs?: number;
  /** Whether a deleted pod goes by itself when its grace period ends, as if a kubelet had confirmed. Default true. */
  removePodsAfterGrace?: boolean;
}
