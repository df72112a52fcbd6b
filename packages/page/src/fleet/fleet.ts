import type { FleetNode, FleetUpdate } from "@nodekeeper/api/fleet";
import { byName } from "./listed-nodes.ts";

const INTERVAL_MS = 2_000;
const DEADLINE_MS = 10_000;

/** The nodes of the cluster, as far as the local server has told. */
export interface FleetState {
  /** Sorted by name. */
  nodes: readonly FleetNode[];
  /** Undefined until the first answer. */
  listedAt: number | undefined;
  /** Why the nodes can't be listed now. */
  problem: string | undefined;
  /** Why nodes that are gone can't be listed now. */
  archiveProblem: string | undefined;
  /** Why the local server does not answer. Undefined if it does. */
  lost: string | undefined;
}

/** Keeps the state of all nodes up to date while the page is visible. */
export class Fleet {
  state: FleetState = {
    nodes: [],
    listedAt: undefined,
    problem: undefined,
    archiveProblem: undefined,
    lost: undefined,
  };
  /** Names of the nodes that are on the screen: they are read first. */
  shown: readonly string[] = [];
  readonly #onChange: () => void;
  readonly #nodes = new Map<string, FleetNode>();
  #epoch = -1;
  #version = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  start(): void {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") void this.#ask();
    });
    void this.#ask();
  }

  async #ask(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      this.#take(await askServer<FleetUpdate>("fleet", this.#query()));
    } catch (error) {
      this.#show({ ...this.state, lost: (error as Error).message });
    }
    clearTimeout(this.#timer);
    // A hidden page reads nothing: each reading costs the user's machine a process.
    if (document.visibilityState === "visible") this.#timer = setTimeout(() => void this.#ask(), INTERVAL_MS);
  }

  #query(): Record<string, string> {
    return { epoch: String(this.#epoch), version: String(this.#version), shown: this.shown.join(",") };
  }

  #take({ epoch, version, nodes, listedAt, problem, archiveProblem }: FleetUpdate): void {
    const isSame = epoch === this.#epoch;
    if (!isSame) this.#nodes.clear();
    for (const node of nodes) this.#nodes.set(node.node, node);
    [this.#epoch, this.#version] = [epoch, version];
    const { state } = this;
    if (
      isSame &&
      nodes.length === 0 &&
      state.lost === undefined &&
      state.problem === problem &&
      state.archiveProblem === archiveProblem
    ) {
      state.listedAt = listedAt;
      return;
    }
    this.#show({ nodes: byName(this.#nodes.values()), listedAt, problem, archiveProblem, lost: undefined });
  }

  #show(state: FleetState): void {
    this.state = state;
    this.#onChange();
  }
}

/** GET from the local server, relative to the page. Throws an error whose message says why there is no answer. */
export async function askServer<T>(
  path: string,
  query: Readonly<Record<string, string>>,
  signal = AbortSignal.timeout(DEADLINE_MS),
): Promise<T> {
  const response = await fetch(`${path}?${new URLSearchParams(query)}`, { signal }).catch(() => undefined);
  if (!response) throw new Error("kubectl nodekeeper page does not answer");
  const answer = (await response.json()) as T & { error?: { message?: string } };
  if (response.ok) return answer;
  throw new Error(answer.error?.message ?? `HTTP status ${response.status}`);
}
