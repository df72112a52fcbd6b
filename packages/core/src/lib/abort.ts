import type { Clock } from "./clock.ts";
import { type ErrorId, NodekeeperError } from "./errors.ts";

/** A signal to pass on. Call `release` when the work is over: it removes every listener. */
export interface ScopedSignal extends Disposable {
  readonly signal: AbortSignal;
  /** Aborts this scope alone, not its parent. */
  abort(reason?: unknown): void;
  release(): void;
}

/**
 * A signal that aborts with the reason of the first of its parents that does, and can be aborted by itself. It costs a third
 * of `AbortSignal.any`, which leaves its work to the garbage collector.
 */
export function childScope(...parents: readonly (AbortSignal | undefined)[]): ScopedSignal {
  const controller = new AbortController();
  const onAbort = () => controller.abort(parents.find((parent) => parent?.aborted)?.reason);
  for (const parent of parents) {
    if (parent?.aborted) onAbort();
    else parent?.addEventListener("abort", onAbort, { once: true });
  }
  const release = () => {
    for (const parent of parents) parent?.removeEventListener("abort", onAbort);
  };
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason ?? stopped("scope ended")),
    release,
    [Symbol.dispose]: release,
  };
}

/** What an error about a deadline has of the work. */
export interface TimedWork {
  /** The beginning of the message; absent where the caller names the work. */
  name?: string;
  id?: ErrorId;
}

/**
 * A child scope that aborts with a `deadline` error after `ms`.
 * @param work its name, or that and the error's id
 */
export function deadlineScope(
  clock: Clock,
  ms: number,
  work: string | TimedWork,
  ...parents: readonly (AbortSignal | undefined)[]
): ScopedSignal {
  const { name, id }: TimedWork = typeof work === "string" ? { name: work } : work;
  const message = `${name === undefined ? "" : `${name}: `}no answer within ${ms} ms`;
  const scope = childScope(...parents);
  const timer = clock.after(ms, () => scope.abort(new NodekeeperError("deadline", message, { id })));
  const release = () => {
    timer.cancel();
    scope.release();
  };
  return { signal: scope.signal, abort: scope.abort, release, [Symbol.dispose]: release };
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Waits for `promise` or the signal's abort, whichever is first; after an abort the promise's outcome is ignored. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(signal.reason);
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Runs `work` with a signal that aborts after `ms`, and gives up waiting then even if `work` ignores the signal. */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  what: string | TimedWork,
  parent: AbortSignal | undefined | readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using scope = deadlineScope(clock, ms, what, ...(Array.isArray(parent) ? parent : [parent]));
  return await abortable(work(scope.signal), scope.signal);
}

/** The abort reason with which components are stopped. */
export function stopped(message: string): NodekeeperError {
  return new NodekeeperError("stopped", message);
}
