import type { Clock } from "./clock.ts";
import { NodekeeperError } from "./errors.ts";

/** A signal to pass on. Call `release` when the work is over: it removes every listener. */
export interface ScopedSignal extends Disposable {
  readonly signal: AbortSignal;
  /** Aborts this scope alone, not its parent. */
  abort(reason?: unknown): void;
  release(): void;
}

/** A signal that aborts with its parent's reason when the parent does, and can be aborted by itself. */
export function childScope(parent?: AbortSignal): ScopedSignal {
  const controller = new AbortController();
  const onAbort = () => controller.abort(parent?.reason);
  if (parent?.aborted) onAbort();
  else parent?.addEventListener("abort", onAbort, { once: true });
  const release = () => parent?.removeEventListener("abort", onAbort);
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason ?? stopped("scope ended")),
    release,
    [Symbol.dispose]: release,
  };
}

/** A child scope that aborts with a `deadline` error after `ms`; `what` names the work in the message. */
export function deadlineScope(clock: Clock, ms: number, what: string, parent?: AbortSignal): ScopedSignal {
  const scope = childScope(parent);
  const timer = clock.after(ms, () =>
    scope.abort(new NodekeeperError("deadline", `${what}: no answer within ${ms} ms`)),
  );
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
  what: string,
  parent: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using scope = deadlineScope(clock, ms, what, parent);
  return await abortable(work(scope.signal), scope.signal);
}

/** The abort reason with which components are stopped. */
export function stopped(message: string): NodekeeperError {
  return new NodekeeperError("stopped", message);
}
