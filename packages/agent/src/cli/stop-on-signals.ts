import { stopped } from "@nodekeeper/core/lib";

/** Aborts on the first SIGINT or SIGTERM. The second exits the process with status 130. */
export function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(130);
      controller.abort(stopped(name));
    });
  }
  return controller.signal;
}

/**
 * Like `stopOnSignals`, for a command that prints: also exits with status 0 when its output is closed, as with `|
 * head`.
 */
export function stopWithReader(): AbortSignal {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  return stopOnSignals();
}
