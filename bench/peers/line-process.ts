import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A process that takes commands as lines and answers each with a line of JSON; the first line comes unasked. */
export class LineProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #command: string;

  /** @param env additions to the environment */
  constructor(
    [program, ...args]: readonly [string, ...string[]],
    env: Readonly<Record<string, string>> = {},
  ) {
    this.#command = program;
    this.#child = spawn(program, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Sends a command and returns its answer. Throws if the process ends. */
  async ask(command: string): Promise<Record<string, number>> {
    this.tell(command);
    return await this.answer();
  }

  /** Sends a command that has no answer. */
  tell(command: string): void {
    this.#child.stdin!.write(`${command}\n`);
  }

  /** Returns the next line. Throws if the process ends. */
  async answer(): Promise<Record<string, number>> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`${this.#command} stopped unexpectedly`);
    return JSON.parse(value);
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}
