import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine/machine.ts";
import type { AgentHost } from "./agent-host.ts";
import type { Consumer } from "./consumer.ts";
import type { Devices } from "./devices.ts";
import { type Counts, count } from "./faults.ts";
import type { History } from "./history.ts";
import type { KatalystAgent } from "./katalyst-agent.ts";
import type { ContainerRuntime } from "./node.ts";
import type { Plan } from "./plan.ts";
import type { PluginActor } from "./plugins.ts";

interface Parts {
  machine: Machine;
  plan: Plan;
  faults: Counts;
  history: History;
  agent: AgentHost;
  runtime: ContainerRuntime;
  devices: Devices;
  katalyst: KatalystAgent;
  plugins: readonly PluginActor[];
  consumers: readonly Consumer[];
}

// Most commits are written back by the kernel long before the power is lost.
const LOST_COMMITS = [1, 1, 2, 5, 20];
const LONGEST_STOP_MS = 5_000;

/** The power of the node. Whenever it went down it boots, and each process is started again after a while. */
export class Power {
  readonly #parts: Parts;
  #isGoingDown = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Loses the power: at once, or at one of the next acts of the agent. */
  lose(): void {
    const { machine } = this.#parts;
    const edge = machine.chance(0.7) ? machine.between(0, 200) : undefined;
    this.#goDown(
      () => this.#lost(),
      () => this.#parts.agent.kill(edge),
    );
  }

  /** Stops the agent, and boots. */
  reboot(): void {
    const { machine, agent, history } = this.#parts;
    this.#goDown(
      () => this.#boot(),
      () => {
        history.note("operator", "reboots the machine");
        machine.scheduler.after(LONGEST_STOP_MS, () => machine.init.run(() => agent.kill()));
        agent.stop();
      },
    );
  }

  #goDown(down: () => void, end: () => void): void {
    const { machine, agent } = this.#parts;
    if (this.#isGoingDown) return;
    const { process } = agent;
    if (!process) {
      down();
      return;
    }
    this.#isGoingDown = true;
    process.onDeath(() => {
      this.#isGoingDown = false;
      machine.init.run(down);
    });
    end();
  }

  #lost(): void {
    const { machine, history, plan, faults } = this.#parts;
    const log = machine.logOf(this.#file("nodekeeper.db"));
    const { lostCommits, tornFiles } = plan.faults;
    const isTorn = machine.chance(tornFiles);
    if (machine.chance(lostCommits) && log.lose(machine.pick(LOST_COMMITS), isTorn)) {
      count(faults, "lostCommits");
      if (isTorn) count(faults, "tornFiles");
    }
    // The agent syncs `nodekeeper.gap` only.
    if (machine.chance(tornFiles) && this.#tear("nodekeeper.pid")) count(faults, "tornFiles");
    history.note("fault", `power lost, commits are kept until ${(log.lastCommitAt / 1_000).toFixed(3)} s`);
    this.#boot();
  }

  #tear(name: string): boolean {
    const file = this.#file(name);
    if (!existsSync(file)) return false;
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, bytes.length >> 1));
    return true;
  }

  #file(name: string): string {
    return join(this.#parts.machine.stateDirectory, name);
  }

  #boot(): void {
    const { machine, history, agent, runtime, devices, katalyst, plugins, consumers } = this.#parts;
    agent.killAll();
    const at = machine.scheduler.now;
    history.boots.push({ at, keptUntil: machine.logOf(this.#file("nodekeeper.db")).lastCommitAt });
    history.note("world", "the machine boots");
    machine.boot();
    for (const { process } of [...plugins, ...consumers]) process?.kill();
    void runtime.reboot(machine.between(0, 8_000));
    devices.boot();
    katalyst.boot();
  }
}
