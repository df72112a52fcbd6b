import type { StatsFs } from "node:fs";
import { messageOf, NodekeeperError, toNodekeeperError } from "@nodekeeper/core/lib";
import type { HostFiles, ReadOptions } from "./host-files.ts";
import { parseCpuList, parseInteger } from "./parse.ts";

const MAX_PROBLEMS = 20;

/** Reads the files of one reading. Absent files are undefined. Failed reads are undefined and recorded as problems. */
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

  /** Reads a small file that the kernel generates in memory; much cheaper than `text`. */
  kernelText(path: string): string | undefined {
    return this.attempt(() => this.#files.kernel.text(path)?.trim());
  }

  /** Reads a long file of this kind, which the kernel returns in several reads. */
  longKernelText(path: string, cap: number): string | undefined {
    return this.attempt(() => this.#files.kernel.longText(path, cap));
  }

  /** Lists a directory of such files. */
  kernelNames(path: string): string[] | undefined {
    return this.attempt(() => this.#files.kernel.names(path));
  }

  /** Reads a decimal integer from such a file. */
  kernelInteger(path: string): number | undefined {
    return this.parsed(path, this.kernelText(path), parseInteger);
  }

  list(path: string): Promise<string[] | undefined> {
    return this.#noted(this.#files.list(path, this.#signal));
  }

  link(path: string): Promise<string | undefined> {
    return this.#noted(this.#files.link(path, this.#signal));
  }

  /** Reads a decimal integer. */
  async integer(path: string): Promise<number | undefined> {
    return this.parsed(path, await this.text(path), parseInteger);
  }

  /** Reads a list such as "0-3,8" from such a file. */
  kernelCpuList(path: string): number[] | undefined {
    return this.parsed(path, this.kernelText(path), parseCpuList);
  }

  /** Reads a list such as "0-3,8". */
  async cpuList(path: string): Promise<number[] | undefined> {
    return this.parsed(path, await this.text(path), parseCpuList);
  }

  /** Reads an attribute that the driver may not support. A failed read returns undefined and is not a problem. */
  async optionalText(path: string): Promise<string | undefined> {
    try {
      return await this.#files.text(path, this.#signal);
    } catch {
      this.#signal.throwIfAborted();
      return undefined;
    }
  }

  /** The same for files that the kernel generates in memory. */
  optionalKernelText(path: string): string | undefined {
    try {
      return this.#files.kernel.text(path)?.trim();
    } catch {
      return undefined;
    }
  }

  /** Returns the statistics of the file system that contains a path. */
  filesystem(path: string): Promise<StatsFs | undefined> {
    return this.#noted(this.#files.filesystem(path, this.#signal));
  }

  /** Parses a file's text. An error of `parse` is recorded as a problem of the file. */
  parsed<T>(path: string, text: string | undefined, parse: (text: string) => T): T | undefined {
    if (text === undefined) return undefined;
    try {
      return parse(text);
    } catch (error) {
      this.note(new NodekeeperError("corrupt", `${this.#files.place(path)}: ${messageOf(error)}`));
      return undefined;
    }
  }

  /** Returns the result of `work`. An error is recorded as a problem. */
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

  /** Records a problem of the reading. Only the first twenty are kept. */
  note(problem: NodekeeperError): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }
}
