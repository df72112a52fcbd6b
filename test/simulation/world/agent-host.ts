import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Census } from "../machine/census.ts";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import { NODE } from "./api-server.ts";
import type { History } from "./history.ts";
import type { Operator } from "./operator.ts";
import type { Settings } from "./settings.ts";
import { SupervisedAgent } from "./supervised-agent.ts";

export const STATUS_ADDRESS = "127.0.0.1:10290";

/** The agent of the node, and for a while perhaps a second one, as during a rolling update. */
export class AgentHost {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #file: string;
  readonly #operator: Pick<Operator, "written" | "taken">;
  readonly #sectionsOf: (settings: Settings) => Readonly<Record<string, unknown>>;
  #agents: readonly SupervisedAgent[];
  /** Why an agent ended by itself, oldest first. */
  readonly failures: string[] = [];
  /** Lines of the log, of all lives. */
  readonly log: string[] = [];
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
    this.#agents = [this.#agent("agent")];
    this.configure(operator.written);
  }

  get process(): Process | undefined {
    return this.#current.process;
  }

  /** Whether there are two agents, of which one may be ending. */
  get hasSecond(): boolean {
    return this.#agents.length > 1;
  }

  /** Whether an agent is started again when it has ended. */
  get isWanted(): boolean {
    return this.#agents.some(({ isWanted }) => isWanted);
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

  start(): void {
    this.#current.start();
  }

  /** What SIGHUP does. */
  reload(): void {
    this.#history.note("operator", "sends SIGHUP");
    this.#current.reload();
  }

  /** What SIGKILL does, now or at one of the next acts of the agent. */
  kill(atEdge?: number): void {
    this.#current.kill(atEdge);
  }

  /** What SIGTERM does. */
  stop(): void {
    this.#current.stop();
  }

  /** Kills all agents, as a loss of power does. */
  killAll(): void {
    for (const agent of this.#agents) if (agent.process) agent.kill();
  }

  /** Ends all agents for good. */
  remove(isKilled: boolean): void {
    for (const agent of this.#agents) agent.remove(isKilled);
  }

  /** Starts a second agent, with the same state directory and the same sockets. */
  startSecond(): void {
    if (this.hasSecond) return;
    const second = this.#agent("second agent");
    this.#agents = [...this.#agents, second];
    this.#history.note("fault", "a second agent is started");
    second.start();
  }

  /** Ends one of two agents: the one that is active, or the one that is not. */
  endOne(): void {
    if (!this.hasSecond || this.#agents.some(({ isWanted }) => !isWanted)) return;
    const ended = this.#machine.pick(this.#agents);
    const forget = () => {
      this.#agents = this.#agents.filter((agent) => agent !== ended);
    };
    if (ended.process) ended.process.onDeath(forget);
    else forget();
    ended.remove(this.#machine.chance(0.5));
  }

  /** The agent that has the state directory; if none has, the first one that runs. */
  get #current(): SupervisedAgent {
    const agents = this.#agents;
    return agents.find(({ isActive }) => isActive) ?? agents.find(({ process }) => process) ?? agents[0]!;
  }

  #agent(name: string): SupervisedAgent {
    const agent: SupervisedAgent = new SupervisedAgent(name, {
      machine: this.#machine,
      history: this.#history,
      nodeName: NODE,
      lives: this.#history.lives,
      censusOf: () => this.census,
      operator: this.#operator,
      file: this.#file,
      failures: this.failures,
      log: this.log,
      hasOther: () => this.#agents.some((other) => other !== agent && other.process),
    });
    return agent;
  }
}
