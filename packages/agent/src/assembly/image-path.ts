import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

/** Resolves to the path. Rejects if it is unknown. */
export type ImagePathReader = (signal: AbortSignal) => Promise<string>;

// An unavailable runtime is not called again in every round.
const RETRY_MS = 30_000;

/**
 * Returns a reader of the path where images are stored: the configured path, or the runtime's, which is called until it
 * has answered once. The reader rejects with the reason if the path is unknown.
 */
export function imagePath(
  configured: string,
  ask: ImagePathReader | undefined,
  clock: Clock,
): ImagePathReader {
  let known = configured || undefined;
  let failed: { error: unknown; at: number } | undefined;
  return async (signal) => {
    if (known) return known;
    if (!ask)
      throw new NodekeeperError(
        "unavailable",
        "the path of images is not configured, and no container runtime is used",
      );
    if (failed && clock.monotonic() - failed.at < RETRY_MS) throw failed.error;
    try {
      known = await ask(signal);
      return known;
    } catch (error) {
      signal.throwIfAborted();
      failed = { error, at: clock.monotonic() };
      throw error;
    }
  };
}
