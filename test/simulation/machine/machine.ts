import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Network } from "./network.ts";
import { Process, processIfAny } from "./process.ts";
import { Scheduler } from "./scheduler.ts";
import { WriteAheadLog } from "./wal.ts";

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
  /** Directory of the agent's state. */
  readonly stateDirectory: string;
  /** Whether the disk with the agent's state is full: databases can't grow (see `fillDisk`), and files can't be written. */
  isDiskFull = false;
  /** Directory whose file system is read-only. Undefined if all are writable. */
  readOnlyDirectory: string | undefined;
  /** Number of changes in each directory: files that were created, removed, replaced or written. */
  readonly changes = new Map<string, number>();
  /** Directory that a boot empties, such as /run. */
  readonly runDirectory: string;
  /** Difference between wall time and virtual time since the start, in milliseconds. */
  wallOffset = 0;
  readonly #processes: Process[] = [];
  #boots = 0;
  #bootedAt = -UPTIME_MS;
  readonly #logs = new Map<string, WriteAheadLog>();

  constructor({ random, root }: MachineOptions) {
    this.random = random;
    this.root = root;
    this.stateDirectory = join(root, "state");
    this.runDirectory = join(root, "run");
    mkdirSync(this.runDirectory);
    this.network = new Network();
    this.init = this.spawn("init");
  }

  /** Wall milliseconds since the epoch at which virtual time began, as long as the wall clock is not stepped. */
  readonly wallAtStart = FIRST_WALL_MS;

  /** Wall milliseconds since the epoch. */
  get wall(): number {
    return FIRST_WALL_MS + this.wallOffset + Math.floor(this.scheduler.now);
  }

  /** Time since the boot, in milliseconds. */
  get uptimeMs(): number {
    return this.scheduler.now - this.#bootedAt;
  }

  /** The kernel's ID of this boot. */
  get bootId(): string {
    return `6c1e51b6-0d3a-4a33-8d0c-${String(this.#boots).padStart(12, "0")}`;
  }

  /** Begins another boot. What ran must have been killed. */
  boot(): void {
    this.#boots++;
    this.#bootedAt = this.scheduler.now;
    rmSync(this.runDirectory, { recursive: true });
    mkdirSync(this.runDirectory);
  }

  /** Returns the write-ahead log of a database. */
  logOf(path: string): WriteAheadLog {
    const log = this.#logs.get(path) ?? new WriteAheadLog(path);
    this.#logs.set(path, log);
    return log;
  }

  /** Creates a process. Nothing of it runs yet. */
  spawn(name: string): Process {
    const process = new Process(name, this.#processes.length + 1, this.scheduler, () => this.wall);
    this.#processes.push(process);
    machines.set(process, this);
    return process;
  }

  /** Kills all processes. Nothing runs on the machine any more, and nothing that ran is kept in memory. */
  end(): void {
    for (const process of this.#processes) process.kill();
    this.scheduler.clear();
    this.network.end();
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
