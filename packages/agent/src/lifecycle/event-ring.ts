import type { ContainerIdentity, NewEvent, PodIdentity, PodLifecycleEvent } from "./events.ts";
import { SharedTexts } from "./shared-texts.ts";

const types = ["ContainerStarted", "ContainerDied", "ContainerRemoved", "PodSync"] as const;
const NO_EXIT_CODE = -(2 ** 31);

/**
 * The last events by sequence number. Kept by column: 100,000 events as objects would take 10 MB, so they take 4.
 * The event of sequence n is at n modulo capacity.
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

  /** The sequence number of the oldest event that is kept, if any is. */
  get first(): number {
    return this.#last - this.#length + 1;
  }

  /** Takes the event after the last one; a gap forgets what was before it. */
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

  /** When the event of a sequence number was seen; undefined when it is not kept. */
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
