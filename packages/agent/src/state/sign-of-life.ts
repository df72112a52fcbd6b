import { type Clock, type Runnable, sleepOrAbort } from "@nodekeeper/core/lib";
import type { StateDatabase } from "./database.ts";

// Rare enough not to load the disk, and often enough to show how long a killed agent was down.
const EVERY_MS = 30_000;

/** Records every 30 s in the state directory that the agent is alive. A killed agent leaves no other sign. */
export class SignOfLife implements Runnable {
  readonly name = "sign-of-life";
  readonly #database: Pick<StateDatabase, "showAlive">;
  readonly #clock: Clock;

  constructor(database: Pick<StateDatabase, "showAlive">, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#database.showAlive(this.#clock.now());
      await sleepOrAbort(this.#clock, EVERY_MS, signal);
    }
  }
}
