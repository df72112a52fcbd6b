import { messageOf, NodekeeperError, PartNotStopped } from "@nodekeeper/api/errors";
import { abortable, childScope, type ScopedSignal, stopped } from "./abort.ts";
import type { Clock } from "./clock.ts";
import type { Logger } from "./log.ts";

/** A long-running part. `run` returns once the signal aborted and everything that it started has ended. */
export interface Runnable {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when other parts can use this one after `run` was called, for example because it listens or has loaded its
   * files. Rejects only if `run` fails too. If undefined, the part is ready as soon as `run` was called.
   */
  ready?(): Promise<unknown>;
}

interface RunInOrderOptions {
  clock: Clock;
  log: Logger;
  /** Deadline for stopping all parts, in milliseconds. */
  stopDeadlineMs: number;
}

interface RunningPart {
  part: Runnable;
  scope: ScopedSignal;
  ended: Promise<void>;
}

/**
 * Runs parts until the signal aborts. Guarantees:
 *
 * 1. Parts start in order, each when the previous one is ready.
 * 2. Parts stop in reverse order, each after the one started after it has ended, all within one deadline. Parts that
 *    still run at the deadline are logged and abandoned. A part that was not started is never run.
 * 3. A part that fails, or returns before it is stopped, stops the others. Its error is thrown with the part's name.
 *
 * Returns the names of abandoned parts, which may still run in this process. Similar to the runnable groups of
 * controller-runtime (pkg/manager/runnable_group.go), but one part at a time.
 */
export async function runInOrder(
  parts: readonly Runnable[],
  options: RunInOrderOptions,
  signal: AbortSignal,
): Promise<string[]> {
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
    // A part that cannot become ready also fails, which ends the wait.
    if (part.ready) await Promise.race([part.ready().catch(() => ended.promise), ended.promise]);
    if (signal.aborted || failures.length > 0) break;
  }
  await ended.promise;
  signal.removeEventListener("abort", onAbort);

  const [failure] = failures;
  const abandoned = await stopInReverse(running, failure ?? signal.reason, options);
  if (failure) throw failure;
  return abandoned;
}

function start(part: Runnable, log: Logger, onFailure: (failure: NodekeeperError) => void): RunningPart {
  const scope = childScope();
  const ended = part
    .run(scope.signal)
    .then(() => {
      if (!scope.signal.aborted) throw new NodekeeperError("internal", "stopped unexpectedly");
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
): Promise<string[]> {
  const { clock, log, stopDeadlineMs } = options;
  const deadline = childScope();
  const timer = clock.after(stopDeadlineMs, () => deadline.abort(stopped("deadline for stopping")));
  const abandoned: string[] = [];
  for (const { part, scope, ended } of running.toReversed()) {
    scope.abort(reason ?? stopped("asked to stop"));
    await abortable(ended, deadline.signal).catch(() => {
      abandoned.push(part.name);
      log.error(
        { errorId: PartNotStopped.id, part: part.name, deadlineMs: stopDeadlineMs },
        "part did not stop in time",
      );
    });
  }
  timer.cancel();
  return abandoned;
}
