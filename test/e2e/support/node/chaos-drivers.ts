import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../child.ts";

export interface ChaosDriversOptions {
  name: string;
  /** The directory in which the agent finds sockets of plugins. */
  socketDir: string;
  directory: string;
  devices: number;
}

/** Instances of one driver, as processes with a socket each; all but one of them end soon. */
export class ChaosDrivers {
  readonly #options: ChaosDriversOptions;
  #instances = 0;
  #current: Child;

  constructor(options: ChaosDriversOptions) {
    this.#options = options;
    mkdirSync(options.directory, { recursive: true });
    this.setLate(0);
    this.#current = this.#start();
  }

  get current(): Child {
    return this.#current;
  }

  get journal(): string {
    return join(this.#options.directory, "journal");
  }

  /** Devices that are set up, by all instances. */
  setUp(): string[] {
    const directory = join(this.#options.directory, "setup");
    return existsSync(directory) ? readdirSync(directory) : [];
  }

  /** From now on calls are late by this time, milliseconds. */
  setLate(ms: number): void {
    writeFileSync(join(this.#options.directory, "late"), String(ms));
  }

  /** Starts the next instance; returns the one before it, which still runs. */
  surge(): Child {
    const before = this.#current;
    this.#current = this.#start();
    return before;
  }

  #start(): Child {
    const { name, socketDir, directory, devices } = this.#options;
    const socket = join(socketDir, `${name}-${++this.#instances}.sock`);
    const child = new Child({
      name: `driver ${this.#instances}`,
      command: process.execPath,
      args: [join(import.meta.dirname, "../chaos-driver.ts"), name, socket, directory, String(devices)],
      logFile: join(directory, "driver.log"),
    });
    child.start();
    return child;
  }
}
