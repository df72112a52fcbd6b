import type { StatsFs } from "node:fs";
import { messageOf, NodekeeperError, toNodekeeperError } from "@nodekeeper/core/lib";
import type { HostFiles, ReadOptions } from "./host-files.ts";
import { parseCpuList, parseInteger } from "./parse.ts";

const MAX_PROBLEMS = 20;

/** The files of one reading: what is absent is undefined, and what fails is undefined and noted as a problem. */
export class Probe {
  readonly problems: NodekeeperError[] = [];
  readonly #files: HostFiles;
  readonly #signal: AbortSignal;

  constructor(files: HostFiles, signal: AbortSignal) {
    this.#files = files;
    this.#signal = signal;
  }

  text(path: string, options?: ReadOptions): Promise<string | undefined> {
    return this.#noted(this.#files.text(path, this.#signal, options));
  }

  /** A small file that the kernel makes up in memory: much cheaper than `text`. */
  kernelText(path: string): string | undefined {
    return this.attempt(() => this.#files.kernel.text(path)?.trim());
  }

  /** The text of a long one, which the kernel hands out in pieces. */
  longKernelText(path: string, cap: number): string | undefined {
    return this.attempt(() => this.#files.kernel.longText(path, cap));
  }

  /** The names in a directory of such files. */
  kernelNames(path: string): string[] | undefined {
    return this.attempt(() => this.#files.kernel.names(path));
  }

  /** A whole decimal number in such a file. */
  kernelInteger(path: string): number | undefined {
    return this.parsed(path, this.kernelText(path), parseInteger);
  }

  list(path: string): Promise<string[] | undefined> {
    return this.#noted(this.#files.list(path, this.#signal));
  }

  link(path: string): Promise<string | undefined> {
    return this.#noted(this.#files.link(path, this.#signal));
  }

  /** A whole decimal number. */
  async integer(path: string): Promise<number | undefined> {
    return this.parsed(path, await this.text(path), parseInteger);
  }

  /** A list such as "0-3,8" in such a file. */
  kernelCpuList(path: string): number[] | undefined {
    return this.parsed(path, this.kernelText(path), parseCpuList);
  }

  /** A list such as "0-3,8". */
  async cpuList(path: string): Promise<number[] | undefined> {
    return this.parsed(path, await this.text(path), parseCpuList);
  }

  /** An attribute whose driver may refuse to answer; a refusal means that there is no answer. */
  async optionalText(path: string): Promise<string | undefined> {
    try {
      return await this.#files.text(path, this.#signal);
    } catch {
      this.#signal.throwIfAborted();
      return undefined;
    }
  }

  /** The same of a file that the kernel makes up in memory. */
  optionalKernelText(path: string): string | undefined {
    try {
      return this.#files.kernel.text(path)?.trim();
    } catch {
      return undefined;
    }
  }

  /** The file system that a path is in, with its size. */
  filesystem(path: string): Promise<StatsFs | undefined> {
    return this.#noted(this.#files.filesystem(path, this.#signal));
  }

  /** What `parse` makes of a file's text; that it throws is a problem of the file. */
  parsed<T>(path: string, text: string | undefined, parse: (text: string) => T): T | undefined {
    if (text === undefined) return undefined;
    try {
      return parse(text);
    } catch (error) {
      this.note(new NodekeeperError("corrupt", `${this.#files.place(path)}: ${messageOf(error)}`));
      return undefined;
    }
  }

  /** What `work` gives; that it throws is a problem. */
  attempt<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.note(toNodekeeperError(error));
      return undefined;
    }
  }

  async #noted<T>(promise: Promise<T | undefined>): Promise<T | undefined> {
    try {
      return await promise;
    } catch (error) {
      this.#signal.throwIfAborted();
      this.note(toNodekeeperError(error));
      return undefined;
    }
  }

  /** Keeps a problem of the reading, the first twenty. */
  note(problem: NodekeeperError): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }
}
