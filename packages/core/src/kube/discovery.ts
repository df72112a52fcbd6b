import { type Clock, codeOf, NodekeeperError, SharedWork } from "../lib/index.ts";
import { type ApiRequest, type Connection, nameOf } from "./connection.ts";
import { nodes } from "./nodes.ts";
import { isRecord } from "./objects.ts";
import { groupVersionPath } from "./paths.ts";
import type { ApiResource, CallOptions, GroupVersionKind } from "./types.ts";

/** How long a kind that the server does not serve is cached as such, milliseconds. */
const UNKNOWN_MS = 10_000;
/** How long the server's answers are cached, milliseconds. */
const KNOWN_MS = 600_000;

interface Answer {
  resources: ApiResource[];
  at: number;
}

/** What the server serves, asked once for each group and version and cached. */
export class Discovery {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #answers = new Map<string, Answer>();
  readonly #asking = new Map<string, SharedWork<Answer>>();

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** As KubeClient.resolve. Concurrent callers share one request; each may stop waiting by its own signal. */
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
      // An old answer is better than none while the server is unavailable.
      if (found && codeOf(error) !== "stopped") return found;
      throw error;
    }
  }

  /** Forgets everything, so that the next lookups ask again. */
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
          // Forgotten meanwhile: the answer may be older than the reason to forget.
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
    const request: ApiRequest = { method: "GET", path, verb: "get", resource: "discovery" };
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

/** Reads an APIResourceList; subresources come in it as "nodes/status". Invalid entries are left out. */
function readResources(what: string, list: unknown, group: string, version: string): ApiResource[] {
  if (!isRecord(list) || !Array.isArray(list.resources)) {
    throw new NodekeeperError("unavailable", `${what}: the answer is not a list of resources`, {
      id: "NK1213",
    });
  }
  const entries = list.resources.filter(isRecord).filter((entry) => typeof entry.name === "string");
  const resources = new Map<string, ApiResource>();
  for (const { name, kind, namespaced, verbs } of entries) {
    const plural = String(name);
    if (plural.includes("/") || typeof kind !== "string") continue;
    const known = Array.isArray(verbs) ? verbs.map(String) : [];
    resources.set(plural, {
      group,
      version,
      kind,
      plural,
      namespaced: namespaced === true,
      verbs: known,
      subresources: [],
    });
  }
  for (const { name } of entries) {
    const [plural, ...rest] = String(name).split("/");
    if (rest.length > 0) resources.get(plural!)?.subresources.push(rest.join("/"));
  }
  return [...resources.values()];
}
