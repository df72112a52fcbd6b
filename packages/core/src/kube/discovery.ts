import { AnswerNotOfKubernetes } from "@nodekeeper/api/errors";
import { type Clock, codeOf, SharedWork } from "../lib/index.ts";
import { type ApiRequest, type Connection, nameOf } from "./connection.ts";
import { nodes } from "./core-group.ts";
import { isRecord } from "./objects.ts";
import { groupVersionPath } from "./paths.ts";
import type { ApiResource, CallOptions, GroupVersionKind } from "./types.ts";

/** How long a kind is cached as not served, in milliseconds. */
const UNKNOWN_MS = 10_000;
/** How long discovery responses are cached, in milliseconds. */
const KNOWN_MS = 600_000;
/** Maximum size of a group's resource list, in bytes: about a hundred times that of the core group. */
const LONGEST = 2 * 1024 * 1024;

interface Answer {
  resources: ApiResource[];
  at: number;
}

/** Discovers the resources that the server serves. Requests each group version once and caches the response. */
export class Discovery {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #answers = new Map<string, Answer>();
  readonly #asking = new Map<string, SharedWork<Answer>>();

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** See KubeClient.resolve. Concurrent callers share one request. A caller's signal ends only its own wait. */
  async resolve(kind: GroupVersionKind, options: CallOptions = {}): Promise<ApiResource | undefined> {
    if (isSameKind(kind, nodes)) return nodes;
    const path = groupVersionPath(kind.group, kind.version);
    const known = this.#answers.get(path);
    const ageMs = known ? this.#clock.monotonic() - known.at : Number.POSITIVE_INFINITY;
    const found = find(known, kind);
    if (known && ageMs < (found ? KNOWN_MS : UNKNOWN_MS)) return found;
    try {
      return find(await this.#ask(path, kind).join(options.signal), kind);
    } catch (error) {
      // A stale response is better than none while the server is unavailable.
      if (found && codeOf(error) !== "stopped") return found;
      throw error;
    }
  }

  /** Clears the cache, so that the next lookups send new requests. */
  forget(): void {
    this.#answers.clear();
    this.#asking.clear();
  }

  #ask(path: string, kind: GroupVersionKind): SharedWork<Answer> {
    const underWay = this.#asking.get(path);
    if (underWay) return underWay;
    const work = new SharedWork(
      async () => {
        try {
          const answer = { resources: await this.#fetch(path, kind), at: this.#clock.monotonic() };
          // If the cache was cleared meanwhile, the response may be outdated and is not stored.
          if (this.#asking.get(path) === work) this.#answers.set(path, answer);
          return answer;
        } finally {
          if (this.#asking.get(path) === work) this.#asking.delete(path);
        }
      },
      { outlivesCallers: true },
    );
    this.#asking.set(path, work);
    return work;
  }

  async #fetch(path: string, { group, version }: GroupVersionKind): Promise<ApiResource[]> {
    const request: ApiRequest = { method: "GET", path, verb: "get", resource: "discovery", longest: LONGEST };
    try {
      const { value } = await this.#connection.call(request);
      return readResources(nameOf(request), value, group, version);
    } catch (error) {
      if (codeOf(error) === "notFound") return [];
      throw error;
    }
  }
}

function isSameKind(a: GroupVersionKind, b: GroupVersionKind): boolean {
  return a.group === b.group && a.version === b.version && a.kind === b.kind;
}

function find(answer: Answer | undefined, kind: GroupVersionKind): ApiResource | undefined {
  return answer?.resources.find((resource) => resource.kind === kind.kind);
}

/** Parses an APIResourceList. Omits subresources, such as "nodes/status", and invalid entries. */
function readResources(what: string, list: unknown, group: string, version: string): ApiResource[] {
  if (!isRecord(list) || !Array.isArray(list.resources)) {
    throw new AnswerNotOfKubernetes({ request: what, problem: "the response is not a list of resources" });
  }
  const entries = list.resources.filter(isRecord).filter((entry) => typeof entry.name === "string");
  const resources = new Map<string, ApiResource>();
  for (const { name, kind, namespaced } of entries) {
    const plural = String(name);
    if (plural.includes("/") || typeof kind !== "string") continue;
    resources.set(plural, { group, version, kind, plural, namespaced: namespaced === true });
  }
  return [...resources.values()];
}
