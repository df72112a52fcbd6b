import { counted } from "@nodekeeper/api/wording";
import type { NodeResult } from "./clean-node.ts";
import type { CommandRun } from "./follow.ts";
import { type PageFormat, printMessage, printValue } from "./output.ts";

const PROGRESS_MS = 10_000;

interface ReportOptions {
  /** Nodes to be cleaned. */
  names: readonly string[];
  isDryRun: boolean;
  format: PageFormat;
  run: CommandRun;
}

/**
 * Prints the removed items of each node when the node is done, and the totals at the end. As JSON or YAML, prints all
 * results at the end, in the order of the names. Prints the number of finished nodes to standard error when a node is
 * done, at most every 10 s.
 */
export class UninstallReport {
  readonly #options: ReportOptions;
  readonly #verb: string;
  readonly #results = new Map<string, NodeResult>();
  #cluster: NodeResult | undefined;
  #shownAt: number;

  constructor(options: ReportOptions) {
    this.#options = options;
    this.#verb = options.isDryRun ? "would be removed" : "removed";
    this.#shownAt = options.run.clock.monotonic();
  }

  add(result: NodeResult): void {
    const { names, format, run } = this.#options;
    this.#results.set(result.node, result);
    if (format === "text") this.#printNode(result);
    const now = run.clock.monotonic();
    if (now - this.#shownAt < PROGRESS_MS) return;
    this.#shownAt = now;
    printMessage(`${this.#results.size} of ${counted(names.length, "node")} done`);
  }

  /** Adds the result of `cleanCluster`. Its node name is empty in JSON and YAML, and "cluster" in text. */
  addCluster(result: Omit<NodeResult, "node">): void {
    this.#cluster = { node: "", ...result };
    if (this.#options.format === "text") this.#printNode({ ...result, node: "cluster" });
  }

  /** Prints the rest. Returns whether every node was cleaned. */
  finish(): boolean {
    const { names, format, run } = this.#options;
    const nodes = names.flatMap((name) => this.#results.get(name) ?? []);
    const isEmpty = !this.#cluster?.error && this.#cluster?.removed.length === 0;
    const results = this.#cluster && !isEmpty ? [...nodes, this.#cluster] : nodes;
    const failed = nodes.filter(({ error }) => error !== undefined).length;
    const total = results.reduce((sum, { removed }) => sum + removed.length, 0);
    const left = failed > 0 ? `; ${counted(failed, "node")} not cleaned` : "";
    if (format !== "text") printValue(run.output, format, results);
    else
      run.output.write(`${counted(nodes.length, "node")}, ${counted(total, "item")} ${this.#verb}${left}\n`);
    return failed === 0 && this.#cluster?.error === undefined;
  }

  #printNode({ node, removed, error }: NodeResult): void {
    const { output } = this.#options.run;
    for (const what of removed) output.write(`${node}: ${this.#verb}: ${what}\n`);
    if (error !== undefined) output.write(`${node}: not removed: ${error}\n`);
  }
}
