import type { ContainerIdentity, PodIdentity } from "@nodekeeper/api/lifecycle";
import type { NewEvent, PodLifecycleEvent } from "./events.ts";
import { SharedTexts } from "./shared-texts.ts";

const types = ["ContainerStarted", "ContainerDied", "ContainerRemoved", "PodSync"] as const;
const NO_EXIT_CODE = -(2 ** 31);

/**
 * The most recent events by sequence number, stored in columns: 100,000 events take 4 MB, instead of 10 MB as
 * objects. The event with sequence number n is at index n modulo capacity.
 */
export class EventRing {
  readonly #capacity: number;
  readonly #at: Float64Array;
  readonly #type: Uint8Array;
  readonly #exitCode: Int32Array;
  readonly #pod: PodIdentity[] = [];
  readonly #container: (ContainerIdentity | undefined)[] = [];
  readonly #reason: string[] = [];
  readonly #texts = new SharedTexts();
  #last = 0;
  #length = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#at = new Float64Array(capacity);
    this.#type = new Uint8Array(capacity);
    this.#exitCode = new Int32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Sequence number of the oldest retained event. If there is none, that of the next event. */
  get first(): number {
    return this.#last - this.#length + 1;
  }

  /** Appends an event. A gap in sequence numbers drops the events before it. */
  put(sequence: number, at: number, { type, pod, container, exitCode, reason }: NewEvent): void {
    if (sequence !== this.#last + 1) this.#length = 0;
    const slot = sequence % this.#capacity;
    this.#at[slot] = at;
    this.#type[slot] = types.indexOf(type);
    this.#exitCode[slot] = exitCode ?? NO_EXIT_CODE;
    this.#pod[slot] = pod;
    this.#container[slot] = container;
    this.#reason[slot] = this.#texts.share(reason);
    this.#last = sequence;
    this.#length = Math.min(this.#length + 1, this.#capacity);
  }

  /** Returns the time of the event with a sequence number. Undefined if it is not retained. */
  at(sequence: number): number | undefined {
    return this.#has(sequence) ? this.#at[sequence % this.#capacity] : undefined;
  }

  get(sequence: number): PodLifecycleEvent | undefined {
    if (!this.#has(sequence)) return undefined;
    const slot = sequence % this.#capacity;
    const exitCode = this.#exitCode[slot]!;
    return {
      sequence,
      at: this.#at[slot]!,
      type: types[this.#type[slot]!]!,
      pod: this.#pod[slot]!,
      container: this.#container[slot],
      exitCode: exitCode === NO_EXIT_CODE ? undefined : exitCode,
      reason: this.#reason[slot]!,
    };
  }

  #has(sequence: number): boolean {
    return sequence >= this.first && sequence <= this.#last;
  }
}
