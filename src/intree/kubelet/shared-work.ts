import { abortable, childScope, type ScopedSignal } from "../../lib/index.ts";

interface Underway<T> {
  readonly promise: Promise<T>;
  readonly scope: ScopedSignal;
  callers: number;
}

/** Work that several callers may want at once: it is done once for all of them, and ends when none waits any more. */
export class SharedWork<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  #underway: Underway<T> | undefined;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#work = work;
  }

  /** The result of the work that is under way, or else of new work. */
  async join(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const underway = this.#underway ?? this.#begin();
    underway.callers++;
    try {
      return await abortable(underway.promise, signal);
    } finally {
      underway.callers--;
      if (underway.callers === 0) {
        if (this.#underway === underway) this.#underway = undefined;
        underway.scope.abort(signal.reason);
      }
    }
  }

  /** The result of work that begins after this call, and so sees what happened before it. */
  async fresh(signal: AbortSignal): Promise<T> {
    const before = this.#underway?.promise;
    if (before) await abortable(before, signal).catch(() => signal.throwIfAborted());
    return await this.join(signal);
  }

  #begin(): Underway<T> {
    const scope = childScope();
    const promise = this.#work(scope.signal).finally(() => {
      if (this.#underway === underway) this.#underway = undefined;
    });
    const underway: Underway<T> = { promise, scope, callers: 0 };
    this.#underway = underway;
    return underway;
  }
}
