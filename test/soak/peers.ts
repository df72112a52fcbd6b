import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ScriptProcess, startScript } from "../support/processes.ts";
import type { Said } from "./said.ts";

const REPORTERS = 4;
const DRIVERS = 2;
const FIRST: Said = { value: 1, burst: 0, bulk: 0, devices: 100 };

/** A plugin process that can be killed, stopped, and started again. */
export class Peer {
  readonly name: string;
  readonly #script: string;
  #args: readonly string[];
  #process: ScriptProcess | undefined;

  constructor(name: string, script: string, args: readonly string[]) {
    this.name = name;
    this.#script = script;
    this.#args = args;
  }

  start(): void {
    this.#process ??= startScript(this.#script, this.#args);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.kill(signal);
  }

  /** For the next start. */
  protected setArguments(args: readonly string[]): void {
    this.#args = args;
  }

  /** Ends it as a crash does; resolves when it has ended. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    running?.kill("SIGKILL");
    await running?.ended;
  }
}

/** A reporter or driver, and what it is to report over all its restarts. */
export class Speaker extends Peer {
  readonly kind: "reporter" | "driver";
  said: Said = FIRST;
  readonly #file: string;
  readonly #pluginDir: string;

  constructor(kind: Speaker["kind"], name: string, pluginDir: string, directory: string) {
    const file = join(directory, `${name}.json`);
    super(name, "test/soak/soak-plugin.ts", [kind, pluginDir, name, file, name]);
    this.kind = kind;
    this.#file = file;
    this.#pluginDir = pluginDir;
    this.say({});
  }

  /** From the next start on it registers under another name and reports the same fields: `name` stays. */
  rename(registeredName: string): void {
    this.setArguments([this.kind, this.#pluginDir, registeredName, this.#file, this.name]);
  }

  /** Reports a new value, and whatever else is to change. */
  say({ burst = 0, bulk = 0, devices = this.said.devices }: Partial<Said>): void {
    this.said = { value: this.said.value + 1, burst, bulk, devices };
    // The plugin never reads half a file.
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.said));
    renameSync(`${this.#file}.new`, this.#file);
  }
}

export interface Peers {
  speakers: Speaker[];
  /** Has sample pods evicted, one after the other, for as long as it runs. */
  eviction: Peer;
}

/** All plugins of a soak, none of them started. */
export function makePeers(pluginDir: string, directory: string): Peers {
  const speaker = (kind: Speaker["kind"], name: string) => new Speaker(kind, name, pluginDir, directory);
  return {
    speakers: [
      ...Array.from({ length: REPORTERS }, (_, at) => speaker("reporter", `reporter-${at}`)),
      ...Array.from({ length: DRIVERS }, (_, at) => speaker("driver", `driver-${at}.example.dev`)),
    ],
    // Three pods that leak 10 MiB a second each: one has to go every few seconds.
    eviction: new Peer("eviction", "examples/eviction/main.ts", [
      ...["--socket-dir", pluginDir, "--name", "soak-eviction", "--limit", "400", "--leak", "10"],
    ]),
  };
}
