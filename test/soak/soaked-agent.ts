import { relative } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { agentScript } from "../../bench/agent-process.ts";
import { type StatusReader, statusReader } from "../support/agent.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";

const root = `${import.meta.dirname}/../..`;

/** The agent as a process that is killed and started again with the same flags. */
export class SoakedAgent {
  readonly reader: StatusReader;
  readonly address: string;
  kills = 0;
  /** Ends that no fault asked for, with the last lines of the log. */
  readonly crashes: string[] = [];
  readonly #args: string[];
  readonly #script = relative(root, agentScript());
  #process: ScriptProcess | undefined;

  constructor(flags: Readonly<Record<string, string>>, address: string) {
    this.address = address;
    this.reader = statusReader(address);
    this.#args = ["run", ...argumentsOf({ ...flags, serverAddress: address })];
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts the agent if it is not running. If it exits by itself, records a crash and starts it again. */
  start(): void {
    if (this.#process) return;
    const started = startScript(this.#script, this.#args);
    this.#process = started;
    void started.ended.then((end) => {
      if (this.#process !== started) return;
      this.crashes.push(`the agent ended with ${end}: ${started.output().slice(-2_000)}`);
      this.#process = undefined;
      this.start();
    });
  }

  /** Ends it as a crash does; resolves when it has ended. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    this.kills++;
    running?.kill("SIGKILL");
    await running?.ended;
  }

  /** Resolves with its exit status. */
  async stop(): Promise<number | string | undefined> {
    const running = this.#process;
    this.#process = undefined;
    running?.kill("SIGTERM");
    return await running?.ended;
  }

  async untilReady(): Promise<void> {
    await until("the agent is ready", async () => (await this.reader.ready()).status === 200, {
      explain: async () => (await this.reader.ready()).text,
    });
  }
}
