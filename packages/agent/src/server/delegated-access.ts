import { createHash } from "node:crypto";
import { PathForbidden, TokenRefused } from "@nodekeeper/api/errors";
import type { KubeApiClient, TokenAnswer } from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  ExpiringCache,
  errorIdOf,
  messageOf,
  NodekeeperError,
  RecentMap,
  Semaphore,
  TokenBucket,
  withDeadline,
} from "@nodekeeper/core/lib";
import { PAGE_ROOT } from "./page.ts";

/** A request to a listener beyond loopback. */
export interface RemoteRequest {
  /** From `Authorization: Bearer` or the session cookie. Undefined if the request has neither. */
  token: string | undefined;
  /** The HTTP method in lower case, as the verbs of nonResourceURLs in RBAC. */
  verb: string;
  /** The path without the query: "/metrics". */
  path: string;
}

/**
 * Authorizes a request. Throws `unauthenticated` if the token is missing or unknown, `forbidden` if its account is not
 * allowed to get the path, `throttled` if there are too many reviews, `unavailable` or `deadline` if the API server
 * cannot be reached.
 */
export type AccessCheck = (request: RemoteRequest, signal: AbortSignal) => Promise<void>;

export interface DelegatedAccessOptions {
  client: Pick<KubeApiClient, "reviewToken" | "reviewAccessOf">;
  clock: Clock;
}

// A revoked permission takes effect within ALLOWED_FOR_MS, a granted one within REFUSED_FOR_MS.
const ALLOWED_FOR_MS = 60_000;
const REFUSED_FOR_MS = 10_000;
const MAX_TOKENS = 256;
const MAX_DECISIONS = 1_024;
// Reviews share the agent's client-side rate limit. Invented tokens must not exhaust it, nor invented paths requested
// by an unprivileged account, which every pod has.
const REVIEWS_OF_STRANGERS = { perSecond: 2, burst: 10 };
// Reviews also share the connections to the API server, which slow ones occupy.
const REVIEWS_OF_STRANGERS_AT_ONCE = { permits: 2, maxWaiting: 8 };
// Limits the requests with unknown tokens that await a review, because each occupies one of the server's places. Excess
// requests are rejected immediately.
const STRANGERS_AT_ONCE = { permits: 8, maxWaiting: 0 };
// For tokens that were allowed at least one path. The page reads some 30 paths; each is reviewed once a minute.
const REVIEWS_OF_READERS = { perSecond: 5, burst: 30 };
const LONGEST_WAIT_MS = 2_000;
const DEADLINE_MS = 8_000;

/**
 * Returns the path that RBAC must grant. The default ClusterRole system:discovery grants every authenticated account
 * get on /api/*, so the agent's API is reviewed under a prefix. Metrics keep the path that Prometheus expects. The
 * page's files share one permission with the page.
 */
function grantedPath(path: string): string {
  if (path.startsWith(PAGE_ROOT)) return "/nodekeeper/";
  return path === "/metrics" ? path : `/nodekeeper${path}`;
}

/**
 * Delegates authentication and authorization to the API server, as the servers of the kubelet and controller-runtime
 * do: a TokenReview identifies the account, a SubjectAccessReview decides whether it may get the path (RBAC:
 * nonResourceURLs). Results are cached: 60 s if allowed, 10 s if denied.
 */
export function delegatedAccess({ client, clock }: DelegatedAccessOptions): AccessCheck {
  const tokens = new ExpiringCache<TokenAnswer>({ clock, maxEntries: MAX_TOKENS });
  const decisions = new ExpiringCache<{ allowed: boolean; reason: string }>({
    clock,
    maxEntries: MAX_DECISIONS,
  });
  const ofStrangers = new TokenBucket(clock, REVIEWS_OF_STRANGERS);
  const ofReaders = new TokenBucket(clock, REVIEWS_OF_READERS);
  const reviewsOfStrangers = new Semaphore(REVIEWS_OF_STRANGERS_AT_ONCE);
  const strangers = new Semaphore(STRANGERS_AT_ONCE);
  const readers = new RecentMap<string, true>(MAX_TOKENS);
  const ttlMs = (isGood: boolean) => (isGood ? ALLOWED_FOR_MS : REFUSED_FOR_MS);
  // Concurrent requests share one review, so it must not be canceled with the first of them.
  const within = <T>(what: string, key: string, ask: (signal: AbortSignal) => Promise<T>) =>
    withDeadline(clock, { ms: DEADLINE_MS, name: what }, undefined, async (signal) => {
      const review = async (limit: TokenBucket) => {
        await limit.take(LONGEST_WAIT_MS, signal);
        return await ask(signal).catch(notOfTheToken);
      };
      if (readers.has(key)) return await review(ofReaders);
      return await reviewsOfStrangers.run(signal, () => review(ofStrangers));
    });

  const authorize = async (
    key: string,
    { token, verb, path: requested }: RemoteRequest & { token: string },
  ) => {
    const path = grantedPath(requested);
    const { user } = await tokens.get(
      key,
      () => within("token review", key, (signal) => client.reviewToken(token, { signal })),
      (answer) => ttlMs(answer.user !== undefined),
    );
    if (!user) {
      readers.delete(key);
      throw new TokenRefused({ problem: "the API server does not know the token" });
    }
    const { allowed, reason } = await decisions.get(
      // Hashed because a path may be as long as the request headers allow.
      digest(`${key} ${verb} ${path}`),
      () => within("access review", key, (signal) => client.reviewAccessOf(user, { verb, path }, { signal })),
      (answer) => ttlMs(answer.allowed),
    );
    if (allowed) {
      readers.set(key, true);
      return;
    }
    const because = reason ? `: ${reason}` : "";
    throw new PathForbidden({ account: user.username, verb, path, because });
  };

  return async ({ token, ...request }, signal) => {
    if (!token) throw new TokenRefused({ problem: "a bearer token is required" });
    const key = digest(token);
    const run = () => authorize(key, { token, ...request });
    await (readers.has(key) ? run() : strangers.run(signal, run));
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

// An authentication failure of the agent's own credentials must not be reported as a failure of the request's token.
function notOfTheToken(error: unknown): never {
  if (codeOf(error) !== "unauthenticated") throw error;
  throw new NodekeeperError("unavailable", messageOf(error), { id: errorIdOf(error), cause: error });
}
