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

  /** Virtual milliseconds since the start of the world. */
  get now(): number {
    return this.#now;
  }

  /** Runs `callback` after `ms`, never in the current turn. */
  after(ms: number, callback: () => void): Timer {
    const entry: Entry = { dueAt: this.#now + Math.max(ms, 0), order: this.#order++, run: callback };
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
   * @param isOver called when a callback and all that it resolved have run; ends the run if it returns true
   */
  async run(until: number, isOver: () => boolean = () => false): Promise<void> {
    await settled();
    for (let next = this.#heap[0]; next && next.dueAt <= until; next = this.#heap[0]) {
      this.#pop();
      if (!next.run) continue;
      this.#now = next.dueAt;
      this.steps++;
      next.run();
      await settled();
      if (isOver()) return;
    }
    this.#now = Math.max(this.#now, until);
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

// The real function: `globals.ts` replaces the global one. It runs after all microtasks and process.nextTick callbacks.
const nextTurn = setImmediate;

function settled(): Promise<void> {
  return new Promise((resolve) => nextTurn(resolve));
}
