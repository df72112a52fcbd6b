import { childScope, type ScopedSignal, stopped } from "@nodekeeper/core/lib";

/** Returns a scope that the first SIGINT or SIGTERM aborts. The second exits the process with status 130. */
export function stopOnSignals(): ScopedSignal {
  const scope = childScope();
  const onSignal = (name: NodeJS.Signals) => {
    if (scope.signal.aborted) process.exit(130);
    scope.abort(stopped(name));
  };
  const names = ["SIGINT", "SIGTERM"] as const;
  for (const name of names) process.on(name, onSignal);
  const release = () => {
    for (const name of names) process.off(name, onSignal);
  };
  return { ...scope, release, [Symbol.dispose]: release };
}

/**
 * Like `stopOnSignals`, for a command that prints: also exits with status 0 when its output is closed, as with `|
 * head`.
 */
export function stopWithReader(): ScopedSignal {
  // Not removed with the scope: the error may follow the end of the command.
  process.stdout.off("error", onOutputError).on("error", onOutputError);
  return stopOnSignals();
}

function onOutputError(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
}
