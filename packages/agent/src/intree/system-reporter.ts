import { MachineUnreadable } from "@nodekeeper/api/errors";
import type { InTreeReporterName } from "@nodekeeper/api/settings";
import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { type Clock, type Logger, messageOf, NodekeeperError, SharedWork } from "@nodekeeper/core/lib";
import type { Host } from "../host/index.ts";
import { customNodeResource, type ReporterSource } from "../reporting/index.ts";
import { SystemFactsReader } from "./system-facts.ts";
import { systemProperties } from "./system-properties.ts";

/** Plugin name, the same as that of katalyst's system reporter. */
export const SYSTEM_REPORTER_NAME = "system-reporter-plugin" satisfies InTreeReporterName;

const POLL_MS = 30_000;

export interface SystemReporterOptions {
  host: Host;
  clock: Clock;
  log: Logger;
  /** Whether to report CPU flags. Default false. */
  reportCpuFlags?: boolean;
}

/** Reports the machine's CPUs, memory, NUMA nodes and network interfaces as properties of the CustomNodeResource. */
export class SystemReporter implements ReporterSource {
  readonly name = SYSTEM_REPORTER_NAME;
  readonly #facts: SystemFactsReader;
  readonly #options: SystemReporterOptions;
  readonly #encoder = new TextEncoder();
  // Concurrent polls and watches share one reading, which has the host's deadline rather than a caller's.
  readonly #readings = new SharedWork(() => this.#read(), { outlivesCallers: true });
  #lastProblems = "";

  constructor(options: SystemReporterOptions) {
    this.#options = options;
    this.#facts = new SystemFactsReader(options.host);
  }

  /** Reads the machine. Throws `unavailable` if nothing could be read, so that the last content is kept. */
  async getReportContent(signal: AbortSignal): Promise<GetReportContentResponse> {
    return this.#response(await this.#readings.join(signal));
  }

  /** Yields the content immediately and after each change. Throws the signal's reason when it aborts. */
  async *listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse> {
    const { clock, log } = this.#options;
    let last: string | undefined;
    for (;;) {
      try {
        const current = await this.#readings.join(signal);
        if (current !== last) yield this.#response(current);
        last = current;
      } catch (error) {
        signal.throwIfAborted();
        log.warn(
          { errorId: MachineUnreadable.id, plugin: this.name, err: error },
          "failed to read the machine's properties, retrying",
        );
      }
      await clock.sleep(POLL_MS, signal);
    }
  }

  async #read(): Promise<string> {
    const { facts, problems } = await this.#facts.read();
    this.#logChange(problems);
    const properties = systemProperties(facts, { cpuFlags: this.#options.reportCpuFlags ?? false });
    if (properties.length === 0) {
      const { root } = this.#options.host;
      const why = problems[0] ? messageOf(problems[0]) : "no /proc and /sys found";
      throw new NodekeeperError("unavailable", `failed to read the machine's properties at ${root}: ${why}`);
    }
    return JSON.stringify(properties);
  }

  // Logged only when problems start, change or end, because they last for many polls.
  #logChange(problems: readonly NodekeeperError[]): void {
    const current = problems.map(messageOf).sort().join("; ");
    if (current === this.#lastProblems) return;
    this.#lastProblems = current;
    const { log } = this.#options;
    if (current === "") log.info({ plugin: this.name }, "all properties of the machine can be read again");
    else
      log.warn(
        { errorId: MachineUnreadable.id, plugin: this.name, problems: current },
        "failed to read some properties of the machine",
      );
  }

  #response(properties: string): GetReportContentResponse {
    const value = this.#encoder.encode(properties);
    const field = [{ fieldType: FieldType.Spec, fieldName: "NodeResourceProperties", value }];
    return { content: [{ groupVersionKind: { ...customNodeResource }, field }] };
  }
}
