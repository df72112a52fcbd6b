import { createHash } from "node:crypto";
import type { KubeApiClient, TokenAnswer } from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  ExpiringCache,
  errorIdOf,
  messageOf,
  NodekeeperError,
  TokenBucket,
  withDeadline,
} from "@nodekeeper/core/lib";
import { PAGE_ROOT } from "./page.ts";

/** A request from another machine. */
export interface RemoteRequest {
  /** From the header `Authorization: Bearer`, or of a browser that is signed in; undefined where there is none. */
  token: string | undefined;
  /** The HTTP method in lower case, as RBAC writes verbs of nonResourceURLs. */
  verb: string;
  /** The path without its query: "/metrics". */
  path: string;
}

/**
 * Decides about a request. Throws `unauthenticated` for no or an unknown token, `forbidden` where its account may not
 * get the path, `throttled` where there are too many reviews, `unavailable` or `deadline` where the API server can't be
 * asked.
 */
export type AccessCheck = (request: RemoteRequest, signal: AbortSignal) => Promise<void>;

export interface DelegatedAccessOptions {
  client: Pick<KubeApiClient, "reviewToken" | "reviewAccessOf">;
  clock: Clock;
}

// A revoked permission ends within the longer, a granted one works within the shorter.
const ALLOWED_FOR_MS = 60_000;
const REFUSED_FOR_MS = 10_000;
const MAX_TOKENS = 256;
const MAX_DECISIONS = 1_024;
// Reviews share the agent's own budget of API calls: invented tokens must not use it up, nor invented paths of an account
// that may get nothing, as any pod has one.
const REVIEWS_OF_STRANGERS = { perSecond: 2, burst: 10 };
// Of tokens that were allowed something. The page reads some 30 addresses, each of which is reviewed once a minute.
const REVIEWS_OF_READERS = { perSecond: 5, burst: 30 };
const LONGEST_WAIT_MS = 2_000;
const DEADLINE_MS = 8_000;

/**
 * The path that RBAC has to grant. Kubernetes' default role system:discovery lets every authenticated account get
 * /api/*, so the agent's own API is reviewed under a prefix. Metrics are where Prometheus expects them. The page's files are
 * one with the page.
 */
function grantedPath(path: string): string {
  if (path.startsWith(PAGE_ROOT)) return "/nodekeeper/";
  return path === "/metrics" ? path : `/nodekeeper${path}`;
}

/**
 * Leaves the decision to the API server, as the kubelet's and controller-runtime's servers do: a TokenReview
 * identifies the account of the token, a SubjectAccessReview decides whether it may get the path (RBAC:
 * nonResourceURLs). Answers are cached:
 * a minute where the request is allowed, ten seconds where it is not.
 */
export function delegatedAccess({ client, clock }: DelegatedAccessOptions): AccessCheck {
  const tokens = new ExpiringCache<TokenAnswer>({ clock, maxEntries: MAX_TOKENS });
  const decisions = new ExpiringCache<{ allowed: boolean; reason: string }>({
    clock,
    maxEntries: MAX_DECISIONS,
  });
  const ofStrangers = new TokenBucket(clock, REVIEWS_OF_STRANGERS);
  const ofReaders = new TokenBucket(clock, REVIEWS_OF_READERS);
  const readers = new RecentKeys(MAX_TOKENS);
  const ttlMs = (isGood: boolean) => (isGood ? ALLOWED_FOR_MS : REFUSED_FOR_MS);
  // Concurrent requests share one review, so that it does not end when the first of them does.
  const within = <T>(what: string, key: string, ask: (signal: AbortSignal) => Promise<T>) =>
    withDeadline(clock, DEADLINE_MS, what, undefined, async (signal) => {
      await (readers.has(key) ? ofReaders : ofStrangers).take(LONGEST_WAIT_MS, signal);
      return await ask(signal).catch(notOfTheToken);
    });

  return async ({ token, verb, path: requested }) => {
    const path = grantedPath(requested);
    if (!token) throw new NodekeeperError("unauthenticated", "a bearer token is required", { id: "NK1708" });
    const key = digest(token);
    const { user } = await tokens.get(
      key,
      () => within("token review", key, (signal) => client.reviewToken(token, { signal })),
      (answer) => ttlMs(answer.user !== undefined),
    );
    if (!user) {
      readers.delete(key);
      throw new NodekeeperError("unauthenticated", "the API server does not know the token", {
        id: "NK1708",
      });
    }
    const { allowed, reason } = await decisions.get(
      // A path may be as long as a request's head.
      digest(`${key} ${verb} ${path}`),
      () => within("access review", key, (signal) => client.reviewAccessOf(user, { verb, path }, { signal })),
      (answer) => ttlMs(answer.allowed),
    );
    if (allowed) {
      readers.add(key);
      return;
    }
    const because = reason ? `: ${reason}` : "";
    throw new NodekeeperError("forbidden", `${user.username} may not ${verb} ${path}${because}`, {
      id: "NK1709",
    });
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

// A refusal of the agent's own credentials must not be taken for one of the request's token.
function notOfTheToken(error: unknown): never {
  if (codeOf(error) !== "unauthenticated") throw error;
  throw new NodekeeperError("unavailable", messageOf(error), { id: errorIdOf(error), cause: error });
}

/** A set that forgets the key that was added longest ago where there are too many. */
class RecentKeys {
  readonly #most: number;
  readonly #keys = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  delete(key: string): void {
    this.#keys.delete(key);
  }

  add(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    const [oldest] = this.#keys;
    if (this.#keys.size > this.#most && oldest !== undefined) this.#keys.delete(oldest);
  }
}
