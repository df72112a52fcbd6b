import { type ChildProcess as Child, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Backoff, type Clock, type Logger, type Runnable, sleepOrAbort } from "@nodekeeper/core/lib";

export interface ChildProcessOptions {
  name: string;
  script: URL;
  args: readonly string[];
  clock: Clock;
  log: Logger;
}

const KILL_AFTER_MS = 2_000;

/**
 * Runs a Node.js script in a child process. Restarts it with backoff (10 s to 60 s) when it exits. On abort it gets
 * SIGTERM, and SIGKILL after 2 s.
 */
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
        "process exited, restarting after a delay",
      );
      await sleepOrAbort(clock, delayMs, signal);
    }
  }

  async #runOnce(signal: AbortSignal): Promise<number | string | null> {
    const { script, args, clock, log } = this.#options;
    // The child's stdin closes when this process exits, even after SIGKILL. With --exit-with-parent it then exits.
    const child = spawn(process.execPath, [fileURLToPath(script), ...args], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    child.stdin?.on("error", () => {});
    for (const stream of [child.stdout, child.stderr]) {
      if (stream)
        createInterface({ input: stream }).on("line", (line) =>
          log.debug({ process: this.name, line }, "process output"),
        );
    }
    const ended = new Promise<number | string | null>((resolve) => {
      child.once("error", (error) => {
        log.error({ err: error, process: this.name }, "failed to start process");
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
