import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export interface ChildOptions {
  name: string;
  command: string;
  args: readonly string[];
  /** Everything it writes is appended here. */
  logFile: string;
  env?: Readonly<Record<string, string>>;
  /** Words in front of the command, as of a program that changes its namespaces and becomes it. */
  enter?: readonly string[];
}

const STOP_MS = 60_000;
const PATIENCE_MS = 180_000;
// With it no child outlives a test process that was killed before it could clean up.
const pdeathsig = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

/** A real process of the suite, which can be killed and started again with the same arguments. */
export class Child {
  readonly #options: ChildOptions;
  #process: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();

  constructor(options: ChildOptions) {
    this.#options = options;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error(`${this.#options.name} does not run`);
    return pid;
  }

  get isRunning(): boolean {
    return (
      this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null
    );
  }

  /** What it has written so far. */
  get log(): string {
    return existsSync(this.#options.logFile) ? readFileSync(this.#options.logFile, "utf8") : "";
  }

  start(): void {
    if (this.isRunning) throw new Error(`${this.#options.name} runs already`);
    const { command, args, env, logFile, enter = [] } = this.#options;
    const bound = pdeathsig ? [pdeathsig, "--pdeathsig", "KILL"] : [];
    const [program, ...rest] = [...bound, ...enter, command, ...args];
    // Straight into the file: what it has written can be read at once, and its own children can't hold a pipe open.
    const log = openSync(logFile, "a");
    const child = spawn(program!, rest, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    this.#process = child;
    this.#exited = new Promise((resolve) => {
      child.once("error", (error) => {
        appendFileSync(logFile, `can't be started: ${error.message}\n`);
        resolve();
      });
      child.once("exit", () => resolve());
    });
  }

  /**
   * Polls `check` until it succeeds, and returns its result. Throws an error with the end of the log after 180 s, or if
   * the process has exited.
   */
  async until<T>(what: string, check: () => Promise<T>): Promise<T> {
    const endsAt = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await check();
      } catch (error) {
        if (this.isRunning && Date.now() < endsAt) {
          await sleep(50);
          continue;
        }
        const state = this.isRunning ? `not ${what} after ${PATIENCE_MS} ms` : "ended";
        throw new Error(`${this.#options.name} ${state}:\n${this.log.slice(-4_000)}`, { cause: error });
      }
    }
  }

  /** SIGKILL, as a crash or the kernel's OOM killer. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** SIGTERM, then SIGKILL after a minute. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return await this.#exited;
    this.#process?.kill(signal);
    const timer = setTimeout(() => this.#process?.kill("SIGKILL"), STOP_MS);
    await this.#exited;
    clearTimeout(timer);
  }
}
