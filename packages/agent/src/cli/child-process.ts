import { type ChildProcess as Child, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Backoff, type Clock, type Logger, type Runnable } from "@nodekeeper/core/lib";

export interface ChildProcessOptions {
  name: string;
  script: URL;
  args: readonly string[];
  clock: Clock;
  log: Logger;
}

const KILL_AFTER_MS = 2_000;

/** A Node script in a process of its own, started again with backoff when it ends, stopped with us. */
export class ChildProcess implements Runnable {
  readonly name: string;
  readonly #options: ChildProcessOptions;
  #child: Child | undefined;

  constructor(options: ChildProcessOptions) {
    this.#options = options;
    this.name = options.name;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const backoff = new Backoff({ baseMs: 10_000, maxMs: 60_000 });
    while (!signal.aborted) {
      const code = await this.#runOnce(signal);
      if (signal.aborted) return;
      const delayMs = backoff.next();
      log.warn(
        { process: this.name, code, restartInMs: Math.round(delayMs) },
        "process ended, will be started again",
      );
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }

  async #runOnce(signal: AbortSignal): Promise<number | string | null> {
    const { script, args, clock, log } = this.#options;
    // Our end of its stdin closes when we die, however we die.
    const child = spawn(process.execPath, [fileURLToPath(script), ...args], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    child.stdin?.on("error", () => {});
    for (const stream of [child.stdout, child.stderr]) {
      if (stream)
        createInterface({ input: stream }).on("line", (line) =>
          log.debug({ process: this.name, line }, "output of a process"),
        );
    }
    const ended = new Promise<number | string | null>((resolve) => {
      child.once("error", (error) => {
        log.error({ err: error, process: this.name }, "process can't be started");
        resolve(null);
      });
      child.once("exit", (code, by) => resolve(code ?? by));
    });
    let kill = { cancel: () => {} };
    const onAbort = () => {
      child.kill("SIGTERM");
      kill = clock.after(KILL_AFTER_MS, () => child.kill("SIGKILL"));
    };
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await ended;
    } finally {
      kill.cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }
}
