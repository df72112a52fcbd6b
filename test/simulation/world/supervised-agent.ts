import { StateDirectoryInUse } from "@nodekeeper/api/errors";
import { createLogger, stopped } from "@nodekeeper/core/lib";
import { createAgent } from "../../../packages/agent/src/agent.ts";
import { Handover } from "../../../packages/agent/src/assembly/index.ts";
import { ConfigurationError, loadConfiguration } from "../../../packages/agent/src/config/index.ts";
import type { Census } from "../machine/census.ts";
import type { Machine } from "../machine/machine.ts";
import { Killed, type Process } from "../machine/process.ts";
import { NODE } from "./api-server.ts";
import type { AgentLife, History } from "./history.ts";
import type { Operator } from "./operator.ts";

/** What agents of a node share. */
export interface AgentParts {
  machine: Machine;
  history: History;
  nodeName: string;
  /** Of the node's agents, oldest first. */
  lives: AgentLife[];
  /** Returns what counts what an agent keeps, in worlds that are about that. */
  censusOf: () => Census | undefined;
  operator: Pick<Operator, "written" | "taken">;
  /** Of the configuration. */
  file: string;
  /** Why an agent ended by itself, oldest first. */
  failures: string[];
  /** Lines of the log, of all lives. */
  log: string[];
  /** Returns whether there is another agent on the node. */
  hasOther: () => boolean;
}

// SQLite waits for so long for the lock of the state directory, and its process does nothing else.
const LOCK_WAIT_MS = 2_000;
const LOCK_POLL_MS = 50;
// An agent whose death is awaited dies within this time.
const LONGEST_LIFE_MS = 5_000;

/** An agent and its supervisor, such as systemd or the kubelet: it is started again whenever it has ended. */
export class SupervisedAgent {
  readonly #name: string;
  readonly #parts: AgentParts;
  #process: Process | undefined;
  #life: AgentLife | undefined;
  #stop = new AbortController();
  #hangups: (() => void)[] = [];
  isWanted = true;

  constructor(name: string, parts: AgentParts) {
    this.#name = name;
    this.#parts = parts;
  }

  get process(): Process | undefined {
    return this.#process;
  }

  /** Whether it has the state directory: others wait, or end. */
  get isActive(): boolean {
    return this.#life?.activeSince !== undefined;
  }

  start(): void {
    const { machine, history, nodeName, lives, censusOf, hasOther } = this.#parts;
    const suffix = nodeName === NODE ? "" : ` of ${nodeName}`;
    const process = machine.spawn(`agent ${lives.length + 1}${suffix}`);
    process.census = censusOf();
    this.#process = process;
    if (!hasOther()) this.#beginLife(process);
    history.note(this.#name, "starts");
    const stop = new AbortController();
    this.#stop = stop;
    process.onDeath(() => this.#endLife("killed"));
    void process.run(async () => {
      try {
        await this.#run(process, stop.signal);
        this.#endLife("stopped");
      } catch (error) {
        if (process.isDead || error instanceof Killed) return;
        this.#failed(error as Error);
      }
      this.#end(process);
    });
  }

  /** What SIGHUP does. */
  reload(): void {
    this.#process?.run(() => {
      for (const callback of this.#hangups) callback();
    });
  }

  /** What SIGKILL does, now or at one of the next acts of the agent. */
  kill(atEdge?: number): void {
    const process = this.#process;
    if (!process) return;
    const { history } = this.#parts;
    history.note("fault", `${this.#name} killed${atEdge === undefined ? "" : ` at edge ${atEdge}`}`);
    process.onDeath(() => this.#restartLater(process));
    if (atEdge === undefined) process.kill();
    else {
      process.killAtEdge(atEdge);
      // A quiet agent would die in the calm.
      this.#parts.machine.init.after(LONGEST_LIFE_MS, () => process.kill());
    }
  }

  /** What SIGTERM does. */
  stop(): void {
    this.#parts.history.note("operator", `stops the ${this.#name}`);
    this.#process?.run(() => this.#stop.abort(stopped("the operator stops it")));
  }

  /** Ends the agent, and does not start it again. */
  remove(isKilled: boolean): void {
    this.isWanted = false;
    if (isKilled) this.kill();
    else this.stop();
  }

  /** What `nodekeeper run` does. */
  async #run(process: Process, signal: AbortSignal): Promise<void> {
    const { operator, file, nodeName, log: lines } = this.#parts;
    const sources = { flags: {}, env: {}, hostname: nodeName, file };
    const { configuration } = await loadConfiguration(sources);
    const { written } = operator;
    const readAt = process.scheduler.now;
    const { clock } = process;
    const log = createLogger(configuration.log.level, { write: (line: string) => void lines.push(line) });
    await new Handover({ clock, log }).runInTurns(
      configuration,
      async (standby) => {
        const agent = await this.#whenUnlocked(process, () =>
          createAgent({
            configuration,
            standby,
            sources,
            version: "1.0.0",
            clock,
            log,
            setLogLevel: () => operator.taken(operator.written, false),
            onHangup: (callback) => {
              this.#hangups.push(callback);
              return () => {
                this.#hangups = this.#hangups.filter((other) => other !== callback);
              };
            },
          }),
        );
        operator.taken(written, true);
        const life = this.#life ?? this.#beginLife(process);
        Object.assign(life, { activeSince: process.scheduler.now, configuredAt: readAt });
        const { name, abandoned } = agent;
        const run = async (running: AbortSignal) => {
          await agent.run(running);
          this.#endLife("stopped");
        };
        return { name, abandoned, run };
      },
      signal,
    );
  }

  async #whenUnlocked<T>(process: Process, create: () => Promise<T>): Promise<T> {
    const latest = process.scheduler.now + LOCK_WAIT_MS;
    for (;;) {
      try {
        return await create();
      } catch (error) {
        if (!(error instanceof StateDirectoryInUse) || process.scheduler.now >= latest) throw error;
      }
      await process.clock.sleep(LOCK_POLL_MS);
    }
  }

  #failed(error: Error): void {
    const { machine, history, operator, failures } = this.#parts;
    this.#endLife("failed");
    if (error instanceof StateDirectoryInUse) {
      // The numbers of the process and of the host differ from run to run.
      history.note(this.#name, "fails: the state directory is in use");
      if (!this.#parts.hasOther()) failures.push(`no other agent is there: ${error.message}`);
      // On a full disk, the file that names it can't be written.
      else if (history.full.length === 0 && !NAMED.test(error.message))
        failures.push(`the other agent is not named: ${error.message}`);
      return;
    }
    const isRefused = error instanceof ConfigurationError && !operator.written;
    if (!isRefused) failures.push(error.stack ?? String(error));
    // The name of the world's directory differs from run to run.
    history.note(this.#name, `fails: ${error.message.replaceAll(machine.root, "")}`);
  }

  #beginLife(process: Process): AgentLife {
    const { machine, lives } = this.#parts;
    const life: AgentLife = {
      process,
      startedAt: machine.scheduler.now,
      configuredAt: machine.scheduler.now,
      activeSince: undefined,
      endedAt: undefined,
      how: undefined,
    };
    lives.push(life);
    this.#life = life;
    return life;
  }

  #endLife(how: NonNullable<AgentLife["how"]>): void {
    const life = this.#life;
    if (!life) return;
    Object.assign(life, { how, endedAt: this.#parts.machine.scheduler.now });
    this.#life = undefined;
    this.#hangups = [];
  }

  #end(process: Process): void {
    this.#parts.history.note(this.#name, "has ended");
    process.onDeath(() => this.#restartLater(process));
    process.kill();
  }

  #restartLater(process: Process): void {
    if (this.#process !== process) return;
    this.#process = undefined;
    const { machine } = this.#parts;
    machine.scheduler.after(machine.between(50, 5_000), () => {
      if (this.isWanted && !this.#process) machine.init.run(() => this.start());
    });
  }
}

const NAMED = /another agent: process \d+ on \S+, running since \d{4}-\S+Z$/;
