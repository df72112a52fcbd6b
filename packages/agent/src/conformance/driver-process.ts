import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MOST_OUTPUT = 4_000;

/** A shell command that the suite runs. */
export class OwnProcess {
  readonly #child: ChildProcess;
  /** Resolves with the exit code, or the signal that ended the process. */
  readonly exited: Promise<number | string>;
  isRunning = true;
  // A file without a name. A pipe would keep the suite from ending as long as the command's own children have it.
  readonly #file: number;
  #output: string | undefined;

  constructor(command: string) {
    const path = join(tmpdir(), `nodekeeper-conformance-${randomUUID()}`);
    this.#file = openSync(path, "wx+", 0o600);
    unlinkSync(path);
    this.#child = spawn("sh", ["-c", command], { stdio: ["ignore", this.#file, this.#file] });
    this.exited = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(error.message));
      this.#child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
    });
    void this.exited.then(() => {
      this.isRunning = false;
      this.#output = this.output;
      closeSync(this.#file);
    });
  }

  /** The end of what it printed. */
  get output(): string {
    if (this.#output !== undefined) return this.#output;
    const bytes = Buffer.alloc(MOST_OUTPUT);
    const start = Math.max(0, fstatSync(this.#file).size - MOST_OUTPUT);
    return bytes.subarray(0, readSync(this.#file, bytes, 0, MOST_OUTPUT, start)).toString();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}
