import type { JsonPod } from "./pods.ts";

/** Annotation of a pod whose containers end by themselves: so many seconds after each start, more than 0. */
export const EXITS_AFTER_SECONDS = "dev.nodekeeper.dev/exits-after-seconds";
/** Annotation beside it: the exit code, 0 to 255. Default 0. */
export const EXIT_CODE = "dev.nodekeeper.dev/exit-code";

/** When and how a pod's containers end by themselves; undefined where they run on, or the annotation is no number. */
export function endingOf({ metadata }: JsonPod): { afterMs: number; exitCode: number } | undefined {
  const seconds = Number(metadata.annotations?.[EXITS_AFTER_SECONDS]);
  if (!(seconds > 0)) return undefined;
  const code = Number(metadata.annotations?.[EXIT_CODE] ?? 0);
  return { afterMs: seconds * 1_000, exitCode: code >= 0 && code <= 255 ? Math.trunc(code) : 1 };
}
