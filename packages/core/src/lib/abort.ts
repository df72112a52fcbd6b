import { type ErrorId, NodekeeperError } from "@nodekeeper/api/errors";
import type { Clock } from "./clock.ts";

/** A derived signal. `release` removes its listeners; call it when the work is done. */
export interface ScopedSignal extends Disposable {
  readonly signal: AbortSignal;
  /** Aborts this scope, not its parents. */
  abort(reason?: unknown): void;
  release(): void;
}

/**
 * Returns a signal that aborts with the reason of the first parent that aborts, or by `abort`. Costs a third of
 * `AbortSignal.any`, which leaves its cleanup to the garbage collector.
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

/** Work with a deadline, as described in the error if it is missed. */
export interface TimedWork {
  /** Milliseconds that the work may take. */
  ms: number;
  /** Prefix of the message. Undefined if the caller adds one. */
  name?: string;
  id?: ErrorId;
}

/** Returns a child scope that aborts with a `deadline` error after `ms`. */
export function deadlineScope(
  clock: Clock,
  { ms, name, id }: TimedWork,
  ...parents: readonly (AbortSignal | undefined)[]
): ScopedSignal {
  const message = `${name === undefined ? "" : `${name}: `}no response within ${ms} ms`;
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

/** Settles like `promise`, or rejects with the signal's reason if the signal aborts first. */
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

/**
 * Runs `work` with a signal that aborts after `ms`. Then rejects with a `deadline` error, even if `work` ignores the
 * signal.
 */
export async function withDeadline<T>(
  clock: Clock,
  timed: TimedWork,
  parent: AbortSignal | undefined | readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using scope = deadlineScope(clock, timed, ...(Array.isArray(parent) ? parent : [parent]));
  return await abortable(work(scope.signal), scope.signal);
}

/** Returns the abort reason for a component that is stopped. */
export function stopped(message: string): NodekeeperError {
  return new NodekeeperError("stopped", message);
}
