import { type ChildProcess, spawn } from "node:child_process";

const MOST_OUTPUT = 4_000;

/** A shell command that the suite runs. */
export class OwnProcess {
  readonly #child: ChildProcess;
  /** Resolves with the exit code, or the signal that ended the process. */
  readonly exited: Promise<number | string>;
  /** The end of what it printed. */
  output = "";
  isRunning = true;

  constructor(command: string) {
    this.#child = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "pipe"] });
    const keep = (chunk: Buffer) => {
      this.output = (this.output + chunk).slice(-MOST_OUTPUT);
    };
    this.#child.stdout?.on("data", keep);
    this.#child.stderr?.on("data", keep);
    this.exited = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(error.message));
      this.#child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
    });
    void this.exited.then(() => {
      this.isRunning = false;
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}
