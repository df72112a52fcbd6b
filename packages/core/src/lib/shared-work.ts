import { abortable, childScope, type ScopedSignal } from "./abort.ts";

interface SharedWorkOptions {
  /**
   * Whether work continues when no caller waits for it any more. For work with its own deadline, so that callers do not
   * each send a new request to a source that hangs. Default: the work is aborted.
   */
  outlivesCallers?: boolean;
}

interface Underway<T> {
  readonly promise: Promise<T>;
  readonly scope: ScopedSignal;
  callers: number;
}

/** Runs work once for all concurrent callers. */
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

  /** Returns the result of the work in progress, or of new work. Rejects like the work, or with the signal's reason. */
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

  /** Returns the result of work that starts after this call and therefore observes earlier changes. */
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
    // There may be no caller waiting.
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
