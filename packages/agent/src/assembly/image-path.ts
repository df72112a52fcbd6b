import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

/** Resolves to the path, or rejects with the reason why it is not known. */
export type ImagePathReader = (signal: AbortSignal) => Promise<string>;

// A runtime that is unavailable is not asked in each round, milliseconds.
const RETRY_MS = 30_000;

/**
 * The path where images are stored: as configured, else from the runtime, which is asked until it has answered once.
 * Rejects with the reason why that is not known.
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
