import { type ReportContent, type ReporterPlugin, serveReporterPlugin } from "@nodekeeper/sdk";
import type { AgentProcess } from "./agent-process.ts";

/** A reporter plugin in the test's process, on a real socket, that says what it is told to. */
export class SteeredPlugin {
  readonly served: ReporterPlugin;
  #contents: ReportContent[];
  #changed = Promise.withResolvers<void>();

  constructor(agent: Pick<AgentProcess, "pluginDirectory">, name: string, contents: ReportContent[]) {
    this.#contents = contents;
    this.served = serveReporterPlugin({
      name,
      socketDir: agent.pluginDirectory,
      report: (signal) => this.#report(signal),
    });
  }

  say(...contents: ReportContent[]): void {
    this.#contents = contents;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  stop(): Promise<void> {
    return this.served.stop();
  }

  async *#report(signal: AbortSignal): AsyncGenerator<ReportContent[]> {
    const aborted = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    while (!signal.aborted) {
      const next = this.#changed.promise;
      yield this.#contents;
      await Promise.race([next, aborted]);
    }
  }
}
