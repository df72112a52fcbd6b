import type { KubeObject } from "../kube/index.ts";
import { Backoff, type Clock, type Timer } from "../lib/index.ts";
import { type ApplyPart, applyParts, ownedFields } from "./bodies.ts";

// Our own write may be on its way through the watch: a difference is believed when it lasts.
const BELIEVE_AFTER_MS = 400;
// One who edits again within this time is answered ever more slowly.
const MEMORY_MS = 300_000;

export interface OwnershipOptions {
  fieldManager: string;
  clock: Clock;
  /** Somebody else changed or removed fields of these parts. */
  onLost: (parts: readonly ApplyPart[]) => void;
}

/**
 * Watches over the fields that we own of one object: compares the field sets of our managedFields entries as the
 * server keeps them with those it answered to our last writes. Who changes a field of ours takes it from our set.
 */
export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #expected = new Map<ApplyPart, string>();
  #seen: ReadonlyMap<ApplyPart, string> | undefined;
  readonly #repairs = new Backoff({ baseMs: 500, maxMs: 60_000 });
  #repairedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /** Takes the server's answer to a write of ours. */
  wrote(part: ApplyPart, answer: KubeObject): void {
    this.#expected.set(part, ownedFields(answer, this.#options.fieldManager, part));
  }

  /** Takes the object as the watch tells it; undefined: it is gone. */
  saw(object: KubeObject | undefined): void {
    const { fieldManager, clock } = this.#options;
    this.#seen = new Map(
      applyParts.map((part) => [part, object ? ownedFields(object, fieldManager, part) : ""]),
    );
    if (this.#timer || this.#lost().length === 0) return;
    if (clock.monotonic() - this.#repairedAt > MEMORY_MS) this.#repairs.reset();
    const wait = BELIEVE_AFTER_MS + (this.#repairs.failures > 0 ? this.#repairs.next() : 0);
    this.#timer = clock.after(wait, () => this.#judge());
  }

  /** Ends a judgement that is due. */
  close(): void {
    this.#timer?.cancel();
  }

  #judge(): void {
    this.#timer = undefined;
    const lost = this.#lost();
    if (lost.length === 0) return;
    if (this.#repairs.failures === 0) this.#repairs.next();
    this.#repairedAt = this.#options.clock.monotonic();
    this.#options.onLost(lost);
  }

  #lost(): ApplyPart[] {
    return applyParts.filter((part) => {
      const expected = this.#expected.get(part);
      return expected && this.#seen?.get(part) !== expected;
    });
  }
}
