import type { Clock, Runnable } from "@nodekeeper/core/lib";
import type { StateDatabase } from "./database.ts";

// Rarely enough to be no load for a disk, often enough to show how long a killed agent was down.
const EVERY_MS = 30_000;

/** Leaves a sign in the state directory, every 30 s, that the agent is alive: one that is killed leaves no other. */
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
      await this.#clock.sleep(EVERY_MS, signal).catch(() => undefined);
    }
  }
}
