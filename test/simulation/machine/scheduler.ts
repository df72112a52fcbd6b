import type { Timer } from "@nodekeeper/core/lib";

interface Entry {
  /** Virtual milliseconds since the start of the world. */
  readonly dueAt: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * The only source of events: what happens, happens in a callback of this queue, at its virtual time. Callbacks that are
 * due at the same time run in the order in which they were added.
 */
export class Scheduler {
  readonly #heap: Entry[] = [];
  #now = 0;
  #order = 0;
  /** Number of callbacks that ran. */
  steps = 0;
  /** Called when a callback and all that it resolved have run, in each run. */
  afterStep: () => void = () => {};

  /** Virtual milliseconds since the start of the world. */
  get now(): number {
    return this.#now;
  }

  /** Runs `callback` after `ms`, never in the current turn. */
  after(ms: number, callback: () => void): Timer {
    return this.at(this.#now + Math.max(ms, 0), callback);
  }

  /** Runs `callback` at a time that has not passed, never in the current turn. */
  at(dueAt: number, callback: () => void): Timer {
    const entry: Entry = { dueAt, order: this.#order++, run: callback };
    this.#push(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  /**
   * Runs all callbacks that are due up to a time.
   * @param until virtual milliseconds
   * @param isOver called after `afterStep`; ends the run if it returns true
   */
  run(until: number, isOver: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = () => {
        try {
          settle();
          if (this.#runSome(until, isOver)) resolve();
          else nextTurn(turn);
        } catch (error) {
          reject(error);
        }
      };
      nextTurn(turn);
    });
  }

  /** Runs callbacks for one turn of the event loop. Returns whether the run has ended. */
  #runSome(until: number, isOver: () => boolean): boolean {
    for (let left = STEPS_PER_TURN; left > 0; ) {
      const next = this.#heap[0];
      if (!next || next.dueAt > until) {
        this.#now = Math.max(this.#now, until);
        return true;
      }
      this.#pop();
      if (!next.run) continue;
      left--;
      this.#now = next.dueAt;
      this.steps++;
      next.run();
      settle();
      this.afterStep();
      if (isOver()) return true;
    }
    return false;
  }

  /** Drops all callbacks. */
  clear(): void {
    this.#heap.length = 0;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent]!, entry)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}

// The real function: `globals.ts` replaces the global one.
const nextTurn = setImmediate;

// The event loop also has work of V8 to do.
const STEPS_PER_TURN = 100;

/**
 * Runs all microtasks and process.nextTick callbacks, as Node does after each callback of the event loop. A turn of the
 * event loop for each step would cost more than many a step.
 */
const { _tickCallback: settle } = process as unknown as { _tickCallback: () => void };
