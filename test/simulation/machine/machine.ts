import { Network } from "./network.ts";
import { Process, processIfAny } from "./process.ts";
import { Scheduler } from "./scheduler.ts";

// The machine has run for a while before the world begins.
const UPTIME_MS = 3_600_000;

export interface MachineOptions {
  /** Returns numbers in [0, 1), determined by the seed. */
  random: () => number;
  /** Directory of the machine's files, on a real file system. */
  root: string;
}

/** Wall time at the start of each world: 2026-01-05T08:00:00Z. */
const FIRST_WALL_MS = 1_767_600_000_000;

/**
 * A computer whose processes run in this one process: time is virtual, sockets are objects, and chance is drawn from a
 * seed. The same seed and the same code give the same run.
 */
export class Machine {
  readonly scheduler = new Scheduler();
  readonly network: Network;
  readonly random: () => number;
  readonly root: string;
  /** The process of what belongs to no other: faults, an operator, controllers. */
  readonly init: Process;
  /** Whether databases can't grow: see `fillDisk`. */
  isDiskFull = false;
  readonly bootId = "6c1e51b6-0d3a-4a33-8d0c-7a3f5f1c2b9e";
  /** Difference between wall time and virtual time since the start, in milliseconds. */
  wallOffset = 0;
  #processes = 0;

  constructor({ random, root }: MachineOptions) {
    this.random = random;
    this.root = root;
    this.network = new Network();
    this.init = this.spawn("init");
  }

  /** Wall milliseconds since the epoch. */
  get wall(): number {
    return FIRST_WALL_MS + this.wallOffset + Math.floor(this.scheduler.now);
  }

  /** Time since the boot, in milliseconds. */
  get uptimeMs(): number {
    return UPTIME_MS + this.scheduler.now;
  }

  /** Creates a process. Nothing of it runs yet. */
  spawn(name: string): Process {
    const process = new Process(name, ++this.#processes, this.scheduler, () => this.wall);
    machines.set(process, this);
    return process;
  }

  /** Returns a whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1));
  }

  /** Returns whether a thing of this probability happens. */
  chance(probability: number): boolean {
    return this.random() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.random() * items.length)]!;
  }
}

const machines = new WeakMap<Process, Machine>();

/** Returns the machine on which a process runs. */
export function machineOf(process: Process): Machine {
  return machines.get(process)!;
}

/** Returns the machine of the code that runs now. Undefined outside of worlds, where the globals are the real ones. */
export function machineIfAny(): Machine | undefined {
  const process = processIfAny();
  return process && machineOf(process);
}
