import { runCli } from "../../../packages/agent/src/cli/index.ts";
import type { StatusReader } from "../agent.ts";
import { type Statements, statementsOf } from "./claims.ts";
import type { PlayedPod } from "./pod-endings.ts";

/** Reads what an agent states about pods, in all the places that the agent has. */
export class StatementReader {
  readonly #address: string;
  readonly #reader: StatusReader;

  constructor(address: string, reader: StatusReader) {
    this.#address = address;
    this.#reader = reader;
  }

  /** Reads what is stated about each of these pods, in their order. */
  async about(pods: readonly PlayedPod[]): Promise<Statements[]> {
    const lines = (await this.#command("rounds", "--since", "240h")).split("\n");
    const rounds = await this.rounds();
    const evictions = await this.evictions();
    const marks = await this.#pages("marks?since=0");
    const all: Statements[] = [];
    for (const pod of pods) {
      const explanation = await this.#reader.api(`eviction/explain?pod=${pod.uid}`);
      // Of a pod without a record the error is all that there is.
      const page: string = explanation.error?.message ?? (await this.#command("explain", "pod", pod.uid));
      all.push(statementsOf({ explanation, page, rounds, lines, evictions, marks }, pod));
    }
    return all;
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows of the API
  async rounds(since = 0): Promise<any[]> {
    // biome-ignore lint/suspicious/noExplicitAny: rows of the API
    const all: any[] = [];
    for (;;) {
      const page = await this.#reader.api(`eviction/rounds?since=${since}&after=${all.at(-1)?.id ?? 0}`);
      const items = Array.isArray(page) ? page : page.items;
      if (items.length === 0) return all;
      all.push(...items);
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows of the API
  evictions(): Promise<any[]> {
    return this.#pages("eviction/evictions?since=0");
  }

  /** The samples of a counter by the value of one label. */
  async counter(name: string, label: string): Promise<Record<string, number>> {
    const text = await this.#reader.metrics();
    const found: Record<string, number> = {};
    for (const [, labels = "", value] of text.matchAll(new RegExp(`^${name}{(.*)} (\\S+)$`, "gm"))) {
      const key = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels)?.[1] ?? "";
      found[key] = (found[key] ?? 0) + Number(value);
    }
    return found;
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows of the API
  async #pages(path: string): Promise<any[]> {
    // biome-ignore lint/suspicious/noExplicitAny: rows of the API
    const all: any[] = [];
    for (let after = 0; ; ) {
      const { items, next } = await this.#reader.api(`${path}&after=${after}`);
      all.push(...items);
      if (next === undefined) return all;
      after = next;
    }
  }

  async #command(...words: string[]): Promise<string> {
    let text = "";
    const write = (more: string) => {
      text += more;
    };
    const output = { write, isTerminal: false, columns: 200 };
    await runCli(["node", "nodekeeper", ...words, "--server", this.#address], output);
    return text;
  }
}
