import type { JsonPod } from "./pods.ts";

/** Annotation of a pod whose containers exit by themselves: seconds after each start, greater than 0. */
export const EXITS_AFTER_SECONDS = "dev.nodekeeper.dev/exits-after-seconds";
/** Annotation for their exit code, 0 to 255. Default 0. */
export const EXIT_CODE = "dev.nodekeeper.dev/exit-code";

/**
 * Returns when and how a pod's containers exit by themselves. Undefined if they do not, or the annotation is not a
 * number.
 */
export function endingOf({ metadata }: JsonPod): { afterMs: number; exitCode: number } | undefined {
  const seconds = Number(metadata.annotations?.[EXITS_AFTER_SECONDS]);
  if (!(seconds > 0)) return undefined;
  const code = Number(metadata.annotations?.[EXIT_CODE] ?? 0);
  return { afterMs: seconds * 1_000, exitCode: code >= 0 && code <= 255 ? Math.trunc(code) : 1 };
}
