import { fillDisk } from "../machine/edges/sqlite.ts";
import type { Machine } from "../machine/machine.ts";
import type { AgentHost } from "./agent-host.ts";
import type { History } from "./history.ts";

/** The disk with the state directory. It is full or read-only for a while, until the operator has repaired it. */
export class Disk {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #agent: AgentHost;
  /** Number of agents that had been started when the disk became read-only. */
  #livesBefore = 0;

  constructor(machine: Machine, history: History, agent: AgentHost) {
    this.#machine = machine;
    this.#history = history;
    this.#agent = agent;
  }

  fill(): void {
    const machine = this.#machine;
    this.#history.note("fault", "disk full");
    if (!machine.isDiskFull)
      this.#history.full.push({ from: machine.scheduler.now, to: Number.POSITIVE_INFINITY });
    fillDisk(machine, true);
    machine.scheduler.after(machine.between(1_000, 20_000), () => this.#makeSpace());
  }

  /** What the kernel does after an error of the disk. Half of the time the agent has died of the same error. */
  makeReadOnly(): void {
    const machine = this.#machine;
    if (machine.readOnlyDirectory !== undefined || this.#agent.hasSecond) return;
    this.#history.note("fault", "disk read-only");
    machine.readOnlyDirectory = machine.stateDirectory;
    this.#livesBefore = this.#history.lives.length;
    this.#history.readOnly.push({ from: machine.scheduler.now, to: Number.POSITIVE_INFINITY });
    machine.scheduler.after(machine.between(1_000, 30_000), () => this.#remount());
    if (machine.chance(0.5)) this.#agent.kill();
  }

  repair(): void {
    this.#makeSpace();
    this.#remount();
  }

  #makeSpace(): void {
    if (!this.#machine.isDiskFull) return;
    this.#history.note("operator", "makes space on the disk");
    this.#history.full.at(-1)!.to = this.#machine.scheduler.now;
    fillDisk(this.#machine, false);
  }

  // An agent that was started on a read-only disk keeps its state in memory until it is restarted (docs/operating.md).
  #remount(): void {
    if (this.#machine.readOnlyDirectory === undefined) return;
    this.#history.note("operator", "makes the disk writable");
    this.#machine.readOnlyDirectory = undefined;
    this.#history.readOnly.at(-1)!.to = this.#machine.scheduler.now;
    if (this.#history.lives.length > this.#livesBefore) this.#agent.stop();
  }
}
