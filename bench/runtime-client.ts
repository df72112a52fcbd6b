import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { RuntimeCommand } from "./runtime-process.ts";

/** The other end of bench/runtime-process.ts. */
export class RuntimeProcess {
  readonly socket: string;
  readonly #directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;

  constructor(pods: number, perPod: number, events: "on" | "unimplemented") {
    this.socket = join(this.#directory, "runtime.sock");
    const script = fileURLToPath(new URL("./runtime-process.ts", import.meta.url));
    this.#child = spawn(process.execPath, [script, this.socket, String(pods), String(perPod), events], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#reader = createInterface({ input: this.#child.stdout! });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** Resolves when it serves. */
  async ready(): Promise<this> {
    await this.#answer();
    return this;
  }

  async ask<T>(command: RuntimeCommand): Promise<T> {
    this.#child.stdin!.write(`${JSON.stringify(command)}\n`);
    return (await this.#answer()) as T;
  }

  stop(): void {
    this.#reader.close();
    this.#child.kill("SIGKILL");
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the simulated runtime ended");
    return JSON.parse(value);
  }
}
