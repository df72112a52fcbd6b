import type { Clock } from "@nodekeeper/core/lib";
import type { StreamProtocol, StreamState } from "./driver-stream.ts";

/** Whether a driver is registered, and whether its stream and its process work. */
export interface Standing {
  protocol: StreamProtocol;
  state: StreamState;
  /** Wall milliseconds when it entered the state; 0 if it has not entered any. */
  since: number;
  /** The same, monotonic milliseconds. */
  enteredAt: number;
  error: string | undefined;
  /** Wall milliseconds of its last message. */
  messageAt: number | undefined;
  /** Number of its registration; 0 if it has not registered. Updates from streams of earlier ones are dropped. */
  generation: number;
  isRegistered: boolean;
  /** Set while the driver is registered but its process does not answer. `since`: wall milliseconds. */
  unresponsive: { reason: string; since: number; enteredAt: number } | undefined;
}

/** Keeps a driver's standing. */
export class DriverStanding {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  #current: Readonly<Standing> = {
    protocol: "none",
    state: "waiting",
    since: 0,
    enteredAt: 0,
    error: undefined,
    messageAt: undefined,
    generation: 0,
    isRegistered: false,
    unresponsive: undefined,
  };

  constructor(clock: Pick<Clock, "now" | "monotonic">) {
    this.#clock = clock;
  }

  get current(): Readonly<Standing> {
    return this.#current;
  }

  registered(protocol: StreamProtocol, generation: number): void {
    this.#set({ protocol, generation, isRegistered: true, unresponsive: undefined });
    this.entered(protocol === "none" ? "none" : "waiting");
  }

  deregistered(reason: string): void {
    this.#set({ isRegistered: false, unresponsive: undefined });
    this.entered(this.#current.state === "none" ? "none" : "ended", reason);
  }

  /** Records the state of its stream. The time changes only with the state. */
  entered(state: StreamState, error?: string): void {
    const { state: before, since } = this.#current;
    this.#set({ error });
    if (before === state && since > 0) return;
    this.#set({ state, since: this.#clock.now(), enteredAt: this.#clock.monotonic() });
  }

  /** Records that a message arrived. */
  received(): void {
    this.#set({ messageAt: this.#clock.now() });
  }

  /** Records whether the driver's process answers. */
  heard(problem: string | undefined): void {
    const { since, enteredAt } = this.#current.unresponsive ?? {
      since: this.#clock.now(),
      enteredAt: this.#clock.monotonic(),
    };
    this.#set({ unresponsive: problem === undefined ? undefined : { reason: problem, since, enteredAt } });
  }

  #set(change: Partial<Standing>): void {
    this.#current = { ...this.#current, ...change };
  }
}
