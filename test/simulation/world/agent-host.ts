import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLogger, stopped } from "@nodekeeper/core/lib";
import { type Agent, createAgent } from "../../../packages/agent/src/agent.ts";
import { ConfigurationError, loadConfiguration } from "../../../packages/agent/src/config/index.ts";
import type { Census } from "../machine/census.ts";
import type { Machine } from "../machine/machine.ts";
import { Killed, type Process } from "../machine/process.ts";
import { NODE } from "./api-server.ts";
import type { History } from "./history.ts";
import type { Operator } from "./operator.ts";
import type { Settings } from "./settings.ts";

export const STATUS_ADDRESS = "127.0.0.1:10290";

/** Starts, stops and kills the agent as systemd or the kubelet does: it is started again whenever it has ended. */
export class AgentHost {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #file: string;
  readonly #operator: Pick<Operator, "written" | "taken">;
  readonly #sectionsOf: (settings: Settings) => Readonly<Record<string, unknown>>;
  #process: Process | undefined;
  #stop = new AbortController();
  #hangups: (() => void)[] = [];
  /** Why an agent ended by itself, oldest first. */
  readonly failures: string[] = [];
  /** Lines of the log, of all lives. */
  readonly log: string[] = [];
  isWanted = true;
  /** Counts what agents keep that are started from now on. */
  census: Census | undefined;

  /** @param sectionsOf returns the sections of the configuration file */
  constructor(
    machine: Machine,
    history: History,
    operator: Pick<Operator, "written" | "taken">,
    sectionsOf: (settings: Settings) => Readonly<Record<string, unknown>>,
  ) {
    this.#machine = machine;
    this.#history = history;
    this.#operator = operator;
    this.#sectionsOf = sectionsOf;
    this.#file = join(machine.root, "agent.yaml");
    this.configure(operator.written);
  }

  get process(): Process | undefined {
    return this.#process;
  }

  /**
   * Replaces the configuration file, as editors do. A running agent reads it when it sees the change.
   * @param settings undefined for a file that is refused
   */
  configure(settings: Settings | undefined): void {
    const sections = settings ? this.#sectionsOf(settings) : { eviction: { burst: "many" } };
    const temporary = `${this.#file}.new`;
    writeFileSync(
      temporary,
      JSON.stringify({ apiVersion: "nodekeeper.dev/v1alpha1", kind: "AgentConfiguration", ...sections }),
    );
    renameSync(temporary, this.#file);
  }

  /** What SIGHUP does. */
  reload(): void {
    this.#history.note("operator", "sends SIGHUP");
    this.#process?.run(() => {
      for (const callback of this.#hangups) callback();
    });
  }

  start(): void {
    const life = {
      startedAt: this.#machine.scheduler.now,
      endedAt: undefined,
      how: undefined,
    } as History["lives"][number];
    this.#history.lives.push(life);
    const process = this.#machine.spawn(`agent ${this.#history.lives.length}`);
    process.census = this.census;
    this.#process = process;
    this.#history.note("agent", "starts");
    const stop = new AbortController();
    this.#stop = stop;
    process.onDeath(() => {
      life.endedAt = this.#machine.scheduler.now;
      life.how ??= "killed";
    });
    void process.run(async () => {
      try {
        const agent = await this.#create(process);
        await agent.run(stop.signal);
      } catch (error) {
        if (process.isDead || error instanceof Killed) return;
        const isRefused = error instanceof ConfigurationError && !this.#operator.written;
        if (!isRefused) this.failures.push((error as Error).stack ?? String(error));
        life.how = "failed";
        // The name of the world's directory differs from run to run.
        const message = (error as Error).message.replaceAll(this.#machine.root, "");
        this.#history.note("agent", `fails: ${message}`);
      }
      life.how ??= "stopped";
      this.#end(process);
    });
  }

  /** What SIGKILL does, now or at one of the next acts of the agent. */
  kill(atEdge?: number): void {
    const process = this.#process;
    if (!process) return;
    this.#history.note("fault", `agent killed${atEdge === undefined ? "" : ` at edge ${atEdge}`}`);
    const restart = () => this.#restartLater(process);
    process.onDeath(restart);
    if (atEdge === undefined) process.kill();
    else process.killAtEdge(atEdge);
  }

  /** What SIGTERM does. */
  stop(): void {
    this.#history.note("operator", "stops the agent");
    this.#process?.run(() => this.#stop.abort(stopped("the operator stops it")));
  }

  async #create(process: Process): Promise<Agent> {
    const sources = { flags: {}, env: {}, hostname: NODE, file: this.#file };
    const { configuration } = await loadConfiguration(sources);
    this.#operator.taken(true);
    const log = createLogger(configuration.log.level, { write: (line: string) => void this.log.push(line) });
    return await createAgent({
      configuration,
      sources,
      version: "1.0.0",
      clock: process.clock,
      log,
      setLogLevel: () => this.#operator.taken(false),
      onHangup: (callback) => {
        this.#hangups.push(callback);
        return () => {
          this.#hangups = this.#hangups.filter((other) => other !== callback);
        };
      },
    });
  }

  #end(process: Process): void {
    this.#history.note("agent", "has ended");
    process.onDeath(() => this.#restartLater(process));
    process.kill();
  }

  #restartLater(process: Process): void {
    if (this.#process !== process) return;
    this.#process = undefined;
    this.#hangups = [];
    this.#machine.scheduler.after(this.#machine.between(50, 5_000), () => {
      if (this.isWanted && !this.#process) this.#supervisor.run(() => this.start());
    });
  }

  get #supervisor(): Process {
    return this.#machine.init;
  }
}
