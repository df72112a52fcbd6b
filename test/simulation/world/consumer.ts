import { join } from "node:path";
import { messageOf } from "@nodekeeper/core/lib";
import { PodLifecycleClient, type PodLifecycleItem } from "@nodekeeper/sdk";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { History } from "./history.ts";

const SETTLED_AWAY_MS = 8_000;

/** An item of a watch, and when it arrived, in virtual milliseconds. */
export interface Received {
  readonly at: number;
  readonly item: PodLifecycleItem;
}

/**
 * A program of the node that watches its pods through the agent's gRPC API. It survives the agent's restarts, and after
 * its own it continues at the cursor that it has stored.
 */
export class Consumer {
  readonly name: string;
  readonly socket: string;
  /** All items, of all its processes. */
  readonly received: Received[] = [];
  /** Why the agent refused to continue a watch. */
  readonly refusals: string[] = [];
  process: Process | undefined;
  isWanted = true;
  #cursor: string | undefined;
  readonly #machine: Machine;
  readonly #history: History;
  #longestAwayMs: number;

  /** @param longestAwayMs how long it is away at most after it was killed */
  constructor(machine: Machine, history: History, name: string, longestAwayMs: number) {
    this.#longestAwayMs = longestAwayMs;
    this.#machine = machine;
    this.#history = history;
    this.name = name;
    this.socket = join(machine.runDirectory, "api.sock");
  }

  start(): void {
    const process = this.#machine.spawn(this.name);
    this.process = process;
    process.run(() => void this.#watch(process));
    process.onDeath(() => {
      this.#machine.scheduler.after(this.#machine.between(50, this.#longestAwayMs), () => {
        if (this.isWanted && this.process === process) this.#machine.init.run(() => this.start());
      });
    });
  }

  /** Starts now if it is away, and soon if the machine boots later. */
  settle(): void {
    this.#longestAwayMs = Math.min(this.#longestAwayMs, SETTLED_AWAY_MS);
    if (this.isWanted && this.process?.isDead) this.#machine.init.run(() => this.start());
  }

  kill(): void {
    this.#history.note("fault", `${this.name} killed`);
    this.process?.kill();
  }

  async #watch(process: Process): Promise<void> {
    try {
      const client = new PodLifecycleClient({ socket: this.socket, clock: process.clock });
      const cursor = this.#cursor;
      for await (const item of client.watch({ withStatus: true, ...(cursor ? { cursor } : {}) })) {
        this.#cursor = item.cursor;
        this.received.push({ at: this.#machine.scheduler.now, item });
      }
    } catch (error) {
      if (!process.isDead) this.refusals.push(messageOf(error));
    }
  }
}
