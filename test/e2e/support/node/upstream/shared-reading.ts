import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_MS = 300;

/** A reading that many cases wait for at once. Each call returns one that began after it, so none is stale. */
export class SharedReading<T> {
  readonly #read: () => T | Promise<T>;
  #next: Promise<T> | undefined;

  constructor(read: () => T | Promise<T>) {
    this.#read = read;
  }

  next(): Promise<T> {
    this.#next ??= sleep(PAUSE_MS).then(() => {
      this.#next = undefined;
      return this.#read();
    });
    return this.#next;
  }
}
