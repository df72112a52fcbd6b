import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { type Clock, type Logger, messageOf, NodekeeperError, SharedWork } from "@nodekeeper/core/lib";
import type { Host } from "../host/index.ts";
import { customNodeResource, type ReporterSource } from "../reporting/index.ts";
import { SystemFactsReader } from "./system-facts.ts";
import { systemProperties } from "./system-properties.ts";

/** The name under which katalyst's system reporter is known, and ours beside it. */
export const SYSTEM_REPORTER_NAME = "system-reporter-plugin";

export interface SystemReporterOptions {
  host: Host;
  clock: Clock;
  log: Logger;
  /** Report the CPU's flags too. Default false. */
  reportCpuFlags?: boolean;
  /** How often `listAndWatch` looks for a change, milliseconds. Default 30000. */
  pollIntervalMs?: number;
}

/** Reports what the machine is: CPUs, memory, NUMA nodes, network interfaces, as properties of the CustomNodeResource. */
export class SystemReporter implements ReporterSource {
  readonly name = SYSTEM_REPORTER_NAME;
  readonly #facts: SystemFactsReader;
  readonly #options: SystemReporterOptions;
  readonly #encoder = new TextEncoder();
  // The fetcher's poll and the watch share one reading when they meet. It has the host's deadline, not a caller's.
  readonly #readings = new SharedWork(() => this.#read(), { outlivesCallers: true });
  #lastProblems = "";

  constructor(options: SystemReporterOptions) {
    this.#options = options;
    this.#facts = new SystemFactsReader(options.host);
  }

  /** Reads the machine; throws `unavailable` when nothing at all could be read, so that the last content stays. */
  async getReportContent(signal: AbortSignal): Promise<GetReportContentResponse> {
    return this.#response(await this.#readings.join(signal));
  }

  /** The content now, and again whenever a poll finds it changed. Ends when the signal aborts, by throwing its reason. */
  async *listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse> {
    const { clock, log, pollIntervalMs = 30_000 } = this.#options;
    let last: string | undefined;
    for (;;) {
      try {
        const current = await this.#readings.join(signal);
        if (current !== last) yield this.#response(current);
        last = current;
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ plugin: this.name, err: error }, "Machine can't be read; trying again");
      }
      await clock.sleep(pollIntervalMs, signal);
    }
  }

  async #read(): Promise<string> {
    const { facts, problems } = await this.#facts.read();
    this.#logChange(problems);
    const properties = systemProperties(facts, { cpuFlags: this.#options.reportCpuFlags ?? false });
    if (properties.length === 0) {
      const { root } = this.#options.host;
      const why = problems[0] ? messageOf(problems[0]) : "no /proc and /sys there";
      throw new NodekeeperError("unavailable", `nothing is known of the machine at ${root}: ${why}`);
    }
    return JSON.stringify(properties);
  }

  // Problems last for many polls: one line when they begin, change or end.
  #logChange(problems: readonly NodekeeperError[]): void {
    const current = problems.map(messageOf).sort().join("; ");
    if (current === this.#lastProblems) return;
    this.#lastProblems = current;
    const { log } = this.#options;
    if (current === "") log.info({ plugin: this.name }, "Machine is read completely again");
    else log.warn({ plugin: this.name, problems: current }, "Part of the machine can't be read");
  }

  #response(properties: string): GetReportContentResponse {
    const value = this.#encoder.encode(properties);
    const field = [{ fieldType: FieldType.Spec, fieldName: "NodeResourceProperties", value }];
    return { content: [{ groupVersionKind: { ...customNodeResource }, field }] };
  }
}
