import type { ContainerEventResponse, DeepPartial } from "../../gen/runtime/v1/api.ts";
import type { Clock } from "../../lib/index.ts";
import type { SimulatedEvent } from "./model.ts";
import { sandboxStatus } from "./statuses.ts";

/**
 * What GetContainerEvents does: `on`; `unimplemented`, as runtimes before 1.7 of containerd; `disabled`: the stream
 * ends at once, as CRI-O's with enable_pod_events off.
 */
export type EventMode = "on" | "unimplemented" | "disabled";

/** What goes wrong between the runtime and those who listen. Shares of events, 0 to 1. */
export interface EventFaults {
  lost?: number;
  doubled?: number;
  /** Sent after the one that follows. */
  reordered?: number;
  delayMs?: number;
  /** Old events are sent to each new listener again, as containerd 2 does for five minutes. */
  replayed?: number;
}

// As containerd's channel: who does not read loses what comes.
const LONGEST_QUEUE = 1_000;
const MOST_REPLAYED = 1_000;

/** One listener's way to the events: in order, bounded, with the faults that a test wants. */
export class EventStream {
  readonly #queue: DeepPartial<ContainerEventResponse>[] = [];
  readonly #faults: () => EventFaults;
  readonly #random: () => number;
  #held: SimulatedEvent | undefined;
  #wake: (() => void) | undefined;
  #ended = false;
  #failure: unknown;
  /** Events for which there was no room. */
  dropped = 0;

  constructor(faults: () => EventFaults, random: () => number) {
    this.#faults = faults;
    this.#random = random;
  }

  push(event: SimulatedEvent): void {
    const { lost = 0, doubled = 0, reordered = 0 } = this.#faults();
    if (this.#random() < lost) return;
    if (this.#random() < doubled) this.#put(event);
    if (!this.#held && this.#random() < reordered) {
      this.#held = event;
      return;
    }
    this.#put(event);
    if (this.#held) this.#put(this.#held);
    this.#held = undefined;
  }

  /** @param failure what the listener is told; without it the stream just ends */
  end(failure?: unknown): void {
    this.#ended = true;
    this.#failure ??= failure;
    this.#wake?.();
  }

  async *read(clock: Clock): AsyncGenerator<DeepPartial<ContainerEventResponse>> {
    while (!this.#ended) {
      const next = this.#queue.shift();
      if (next) {
        const { delayMs = 0 } = this.#faults();
        if (delayMs > 0) await clock.sleep(delayMs);
        yield next;
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #put(event: SimulatedEvent): void {
    if (this.#queue.length >= LONGEST_QUEUE) {
      this.dropped++;
      return;
    }
    this.#queue.push({
      containerId: event.id,
      containerEventType: event.type,
      createdAt: event.at,
      ...(event.sandbox ? { podSandboxStatus: sandboxStatus(event.sandbox) } : {}),
    });
    this.#wake?.();
  }
}

/** The last events, for new listeners of a runtime that replays. */
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
