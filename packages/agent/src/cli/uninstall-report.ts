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
 * Prints what was removed from each node as soon as it is, and at the end the totals; all of it at the end as JSON or YAML,
 * in the order of the names. Every 10 s it prints to standard error how many nodes are done.
 */
export class UninstallReport {
  readonly #options: ReportOptions;
  readonly #verb: string;
  readonly #results = new Map<string, NodeResult>();
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

  /** Prints the rest. Returns whether every node was cleaned. */
  finish(): boolean {
    const { names, format, run } = this.#options;
    const results = names.flatMap((name) => this.#results.get(name) ?? []);
    const failed = results.filter(({ error }) => error !== undefined).length;
    const total = results.reduce((sum, { removed }) => sum + removed.length, 0);
    const left = failed > 0 ? `; ${counted(failed, "node")} not cleaned` : "";
    if (format !== "text") printValue(run.output, format, results);
    else
      run.output.write(
        `${counted(results.length, "node")}, ${counted(total, "item")} ${this.#verb}${left}\n`,
      );
    return failed === 0;
  }

  #printNode({ node, removed, error }: NodeResult): void {
    const { output } = this.#options.run;
    for (const what of removed) output.write(`${node}: ${this.#verb}: ${what}\n`);
    if (error !== undefined) output.write(`${node}: not removed: ${error}\n`);
  }
}
