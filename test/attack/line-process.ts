import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";

/** A script of Node that is given lines and prints lines. */
export class LineProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: Interface;

  constructor(script: string, args: readonly string[]) {
    this.#child = spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout! });
  }

  /** The next line that it prints. Throws if it ends before. */
  async line(): Promise<string> {
    const ended = once(this.#child, "exit").then(([code]) => {
      throw new Error(`${this.#child.spawnargs.join(" ")} ended with ${code}`);
    });
    const [line] = await Promise.race([once(this.#lines, "line"), ended]);
    ended.catch(() => {});
    return line;
  }

  say(line: string): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}
