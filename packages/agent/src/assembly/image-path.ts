import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

/** Gives the path, or rejects with why it is not known. */
export type ImagePathReader = (signal: AbortSignal) => Promise<string>;

// A runtime that is away is not asked again each round, milliseconds.
const RETRY_MS = 30_000;

/**
 * Where images are kept: as configured, else as the runtime says, which is asked until it has answered once. Rejects
 * with why that is not known.
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
    if (!ask) throw new NodekeeperError("unavailable", "no container runtime is asked where images are");
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
