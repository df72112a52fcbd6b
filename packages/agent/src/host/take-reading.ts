import { type Clock, type NodekeeperError, toNodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import type { HostFiles } from "./host-files.ts";
import { Probe } from "./probe.ts";
import type { Reading } from "./reading.ts";

export interface ReadingContext {
  files: HostFiles;
  clock: Clock;
  /** Milliseconds. */
  deadlineMs: number;
}

/** One reading with its deadline. Throws nothing but the signal's reason. @param what names it in messages */
export async function takeReading<T>(
  { files, clock, deadlineMs }: ReadingContext,
  what: string,
  work: (probe: Probe, signal: AbortSignal) => Promise<T | undefined>,
  signal?: AbortSignal,
): Promise<Reading<T>> {
  const at = clock.monotonic();
  let problems: readonly NodekeeperError[] = [];
  try {
    const value = await withDeadline(clock, deadlineMs, `reading ${what}`, signal, (scoped) => {
      const probe = new Probe(files, scoped);
      problems = probe.problems;
      return work(probe, scoped);
    });
    if (value !== undefined) return { state: "read", at, value, problems };
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    return { state: "failed", at, error: toNodekeeperError(error) };
  }
  const [problem] = problems;
  if (problem) return { state: "failed", at, error: problem };
  return {
    state: "missing",
    at,
    message: `${what}: the machine at ${files.place("") || "/"} does not report it`,
  };
}
