import type { ContainerEventResponse, DeepPartial } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type Clock, type Timer, WakeableSleep } from "@nodekeeper/core/lib";
import type { SimulatedEvent } from "./model.ts";
import { containerStatus, sandboxStatus } from "./statuses.ts";

/**
 * Behavior of GetContainerEvents: `on`; `unimplemented`, like containerd before 1.7; `disabled`: the stream ends
 * immediately, like CRI-O without enable_pod_events.
 */
export type EventMode = "on" | "unimplemented" | "disabled";

/** Faults between the runtime and its listeners. Fractions of events, 0 to 1. */
export interface EventFaults {
  lost?: number;
  doubled?: number;
  /** Fraction of events that are sent after the next one, or after 50 ms if there is none. */
  reordered?: number;
  /** Delay of all events, in milliseconds. Their intervals are preserved. */
  delayMs?: number;
  /** Number of past events that are sent to each new listener, as containerd 2 does for five minutes. */
  replayed?: number;
}

interface Queued {
  /** Monotonic milliseconds. */
  dueAt: number;
  response: DeepPartial<ContainerEventResponse>;
}

// Like containerd's channel: events are dropped if the listener does not read.
const LONGEST_QUEUE = 1_000;
const MOST_REPLAYED = 1_000;
const HELD_AT_MOST_MS = 50;

export interface EventStreamOptions {
  clock: Clock;
  /** Called for each event. */
  faults: () => EventFaults;
  random: () => number;
}

/** Events for one listener: ordered, bounded, and with the configured faults. */
export class EventStream {
  readonly #queue: Queued[] = [];
  readonly #options: EventStreamOptions;
  #held: { event: SimulatedEvent; timer: Timer } | undefined;
  readonly #changes = new WakeableSleep();
  #ended = false;
  #failure: unknown;
  /** Number of events dropped because the queue was full. */
  dropped = 0;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  push(event: SimulatedEvent): void {
    if (this.#ended) return;
    const { faults, random, clock } = this.#options;
    const { lost = 0, doubled = 0, reordered = 0 } = faults();
    if (random() < lost) return;
    if (random() < doubled) this.#put(event);
    if (!this.#held && random() < reordered) {
      this.#held = { event, timer: clock.after(HELD_AT_MOST_MS, () => this.#release()) };
      return;
    }
    this.#put(event);
    this.#release();
  }

  /** @param failure error that the listener receives; undefined ends the stream normally */
  end(failure?: unknown): void {
    this.#ended = true;
    this.#failure ??= failure;
    this.#held?.timer.cancel();
    this.#held = undefined;
    this.#changes.wake();
  }

  /** Yields events when they are due, until the stream ends. Throws the failure passed to `end`. */
  async *read(): AsyncGenerator<DeepPartial<ContainerEventResponse>> {
    while (!this.#ended) {
      this.#changes.clear();
      const { clock } = this.#options;
      const next = this.#queue[0];
      const waitMs = next ? next.dueAt - clock.monotonic() : Number.POSITIVE_INFINITY;
      if (!next || waitMs > 0) {
        await this.#changes.wait(clock, waitMs);
        continue;
      }
      this.#queue.shift();
      yield next.response;
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #release(): void {
    const held = this.#held;
    if (!held) return;
    held.timer.cancel();
    this.#held = undefined;
    this.#put(held.event);
  }

  #put(event: SimulatedEvent): void {
    if (this.#queue.length >= LONGEST_QUEUE) {
      this.dropped++;
      return;
    }
    const { clock, faults } = this.#options;
    this.#queue.push({
      dueAt: clock.monotonic() + (faults().delayMs ?? 0),
      response: {
        containerId: event.id,
        containerEventType: event.type,
        createdAt: event.at,
        ...(event.sandbox ? { podSandboxStatus: sandboxStatus(event.sandbox) } : {}),
        ...(event.container ? { containersStatuses: [containerStatus(event.container)] } : {}),
      },
    });
    this.#changes.wake();
  }
}

/** The last events, for new listeners of a runtime that replays them. */
export class RecentEvents {
  readonly #events: SimulatedEvent[] = [];

  push(event: SimulatedEvent): void {
    this.#events.push(event);
    if (this.#events.length > MOST_REPLAYED) this.#events.shift();
  }

  last(count: number): readonly SimulatedEvent[] {
    return count > 0 ? this.#events.slice(-count) : [];
  }
}
