import { abortable, childScope, type ScopedSignal } from "./abort.ts";

export interface SharedWorkOptions {
  /**
   * Whether work continues, and serves the next caller, when no caller waits for it any more: for work that has a deadline
   * of its own, so that a source that hangs is not asked again by each. Default: its signal aborts then.
   */
  outlivesCallers?: boolean;
}

interface Underway<T> {
  readonly promise: Promise<T>;
  readonly scope: ScopedSignal;
  callers: number;
}

/** Work that several callers may ask for at once: it is done once for all of them. */
export class SharedWork<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  readonly #outlivesCallers: boolean;
  #underway: Underway<T> | undefined;

  constructor(
    work: (signal: AbortSignal) => Promise<T>,
    { outlivesCallers = false }: SharedWorkOptions = {},
  ) {
    this.#work = work;
    this.#outlivesCallers = outlivesCallers;
  }

  /** The result of the work that is under way, or else of new work. Rejects as the work does, and with the signal's reason. */
  async join(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const underway = this.#underway ?? this.#start();
    underway.callers++;
    try {
      return signal ? await abortable(underway.promise, signal) : await underway.promise;
    } finally {
      underway.callers--;
      if (underway.callers === 0 && !this.#outlivesCallers) this.#end(underway, signal?.reason);
    }
  }

  /** The result of work that starts after this call, and so sees what happened before it. */
  async fresh(signal?: AbortSignal): Promise<T> {
    const before = this.#underway?.promise.then(
      () => {},
      () => {},
    );
    if (before) await (signal ? abortable(before, signal) : before);
    return await this.join(signal);
  }

  #start(): Underway<T> {
    const scope = childScope();
    const promise = this.#work(scope.signal).finally(() => {
      if (this.#underway === underway) this.#underway = undefined;
    });
    // Of work that no caller waits for any more.
    promise.catch(() => {});
    const underway: Underway<T> = { promise, scope, callers: 0 };
    this.#underway = underway;
    return underway;
  }

  #end(underway: Underway<T>, reason: unknown): void {
    if (this.#underway === underway) this.#underway = undefined;
    underway.scope.abort(reason);
  }
}
