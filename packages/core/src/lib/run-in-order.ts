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
 * Runs parts until the signal aborts: starts them in order, stops them in reverse, each when the one after it has
 * ended, all under one deadline. A part that fails, or returns before it is stopped, stops the others; its error is
 * then thrown. Parts that are still running at the deadline are logged and abandoned.
 */
export async function runInOrder(
  parts: readonly Runnable[],
  { clock, log, stopDeadlineMs }: RunInOrderOptions,
  signal: AbortSignal,
): Promise<void> {
  let failure: unknown;
  const failed = Promise.withResolvers<void>();
  const running: RunningPart[] = parts.map((part) => {
    const scope = childScope();
    const ended = part
      .run(scope.signal)
      .then(() => {
        if (!scope.signal.aborted) throw new NodekeeperError("internal", "ended unasked");
      })
      .catch((error) => {
        if (scope.signal.aborted) return;
        log.error({ err: error, part: part.name }, "part failed, stopping");
        failure ??= new NodekeeperError("internal", `${part.name}: ${messageOf(error)}`, { cause: error });
        failed.resolve();
      });
    return { part, scope, ended };
  });

  const aborted = Promise.withResolvers<void>();
  const onAbort = () => aborted.resolve();
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  await Promise.race([aborted.promise, failed.promise]);
  signal.removeEventListener("abort", onAbort);

  await stopInReverse(running, failure ?? signal.reason, { clock, log, stopDeadlineMs });
  if (failure) throw failure;
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
      log.error({ part: part.name, deadlineMs: stopDeadlineMs }, "part did not stop in time");
    });
  }
  timer.cancel();
}
