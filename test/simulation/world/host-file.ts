import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { Series } from "./series.ts";

/** What is wrong with a file for a while. A directory in its place stands for a file that can't be read. */
export const damages = ["missing", "empty", "garbage", "directory"] as const;
type Damage = (typeof damages)[number];

/** A file in which the kernel reports a value. Its directory must exist while it has one. */
export class HostFile<T> {
  /** What a reader gets from the file: undefined if it has no value, or is damaged. */
  readonly readable: Series<T | undefined>;
  readonly #path: string;
  readonly #textOf: (value: T) => string;
  #value: T | undefined;
  #damage: Damage | undefined;

  constructor(path: string, textOf: (value: T) => string, now: () => number) {
    this.#path = path;
    this.#textOf = textOf;
    this.readable = new Series(now);
  }

  /** The value that the kernel reports, also while the file is damaged. */
  get value(): T | undefined {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    this.#write();
  }

  damage(damage: Damage): void {
    if (this.#value === undefined) return;
    this.#damage = damage;
    this.#write();
  }

  repair(): void {
    if (this.#damage === undefined) return;
    this.#damage = undefined;
    if (this.#value !== undefined) this.#write();
  }

  /** The directory of the file was removed. */
  vanish(): void {
    this.#value = undefined;
    this.#damage = undefined;
    this.readable.set(undefined);
  }

  #write(): void {
    const text = this.#textOf(this.#value!);
    this.readable.set(this.#damage === undefined ? this.#value : undefined);
    rmSync(this.#path, { recursive: true, force: true });
    if (this.#damage === "missing") return;
    if (this.#damage === "directory") mkdirSync(this.#path);
    else writeFileSync(this.#path, contentOf(text, this.#damage));
  }
}

function contentOf(text: string, damage: "empty" | "garbage" | undefined): string {
  if (damage === "empty") return "";
  return damage === "garbage" ? `${text.slice(0, text.length >> 1)}\0\0` : text;
}
