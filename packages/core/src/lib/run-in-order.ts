import { abortable, childScope, type ScopedSignal, stopped } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { messageOf, NodekeeperError } from "./errors.ts";
import type { Logger } from "./log.ts";
import type { Runnable } from "./runnable.ts";

export interface RunInOrderOptions {
  clock: Clock;
  log: Logger;
  /** How long all parts together may take to stop, milliseconds. */
  stopDeadlineMs: number;
}

interface RunningPart {
  part: Runnable;
  scope: ScopedSignal;
  ended: Promise<void>;
}

/**
 * Runs parts until the signal aborts. It guarantees:
 *
 * 1. Parts start in order, each when the one before it is ready.
 * 2. They stop in reverse, each when the one after it has ended, all under one deadline. Parts that are still running at
 *    the deadline are logged and abandoned. A part that was not started is not run at all.
 * 3. A part that fails, or returns before it is stopped, stops the others; its error is then thrown, with the part's name.
 *
 * As the runnable groups of controller-runtime (pkg/manager/runnable_group.go), but one part at a time.
 */
export async function runInOrder(
  parts: readonly Runnable[],
  options: RunInOrderOptions,
  signal: AbortSignal,
): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const failures: NodekeeperError[] = [];
  const onAbort = () => ended.resolve();
  const onFailure = (failure: NodekeeperError) => {
    failures.push(failure);
    ended.resolve();
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });

  const running: RunningPart[] = [];
  for (const part of parts) {
    running.push(start(part, options.log, onFailure));
    // One that can't get ready fails as well, which ends the wait.
    if (part.ready) await Promise.race([part.ready().catch(() => ended.promise), ended.promise]);
    if (signal.aborted || failures.length > 0) break;
  }
  await ended.promise;
  signal.removeEventListener("abort", onAbort);

  const [failure] = failures;
  await stopInReverse(running, failure ?? signal.reason, options);
  if (failure) throw failure;
}

function start(part: Runnable, log: Logger, onFailure: (failure: NodekeeperError) => void): RunningPart {
  const scope = childScope();
  const ended = part
    .run(scope.signal)
    .then(() => {
      if (!scope.signal.aborted) throw new NodekeeperError("internal", "ended unasked");
    })
    .catch((error) => {
      if (scope.signal.aborted) return;
      log.error({ err: error, part: part.name }, "part failed, stopping");
      onFailure(new NodekeeperError("internal", `${part.name}: ${messageOf(error)}`, { cause: error }));
    });
  return { part, scope, ended };
}

async function stopInReverse(
  running: RunningPart[],
  reason: unknown,
  options: RunInOrderOptions,
): Promise<void> {
  const { clock, log, stopDeadlineMs } = options;
  const deadline = childScope();
  const timer = clock.after(stopDeadlineMs, () => deadline.abort(stopped("deadline for stopping")));
  for (const { part, scope, ended } of running.toReversed()) {
    scope.abort(reason ?? stopped("asked to stop"));
    await abortable(ended, deadline.signal).catch(() => {
      log.error(
        { errorId: "NK1712", part: part.name, deadlineMs: stopDeadlineMs },
        "part did not stop in time",
      );
    });
  }
  timer.cancel();
}
