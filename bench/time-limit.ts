import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

/** Minutes after which a benchmark fails: several times what it takes on a quiet machine. */
export const limitMinutes: Readonly<Record<string, { quick: number; full: number }>> = {
  reporting: { quick: 10, full: 40 },
  "large-reports": { quick: 10, full: 20 },
  lifecycle: { quick: 5, full: 15 },
  devices: { quick: 5, full: 15 },
  claims: { quick: 10, full: 15 },
  eviction: { quick: 5, full: 30 },
  footprint: { quick: 10, full: 20 },
  memory: { quick: 5, full: 10 },
  host: { quick: 5, full: 10 },
  page: { quick: 10, full: 20 },
  "page-memory": { quick: 20, full: 40 },
  fleet: { quick: 30, full: 60 },
  archive: { quick: 10, full: 20 },
};

class TimeLimitError extends Error {}

/** Runs a benchmark. If it takes longer than its limit, kills the processes that it started, and throws. */
export async function within<T>(name: string, minutes: number, work: () => Promise<T>): Promise<T> {
  const started = new Set<ChildProcess>();
  const note = (message: unknown) => started.add((message as { process: ChildProcess }).process);
  subscribe("child_process", note);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    for (const child of started) child.kill("SIGKILL");
    late.reject(new TimeLimitError(`The benchmark ${name} did not finish within ${minutes} minutes.`));
  }, minutes * 60_000);
  return await Promise.race([work(), late.promise]).finally(() => {
    clearTimeout(timer);
    unsubscribe("child_process", note);
  });
}

/** As `within`, but exits with 1: a benchmark that waits for something that never happens must not hang. */
export async function withTimeLimit<T>(name: string, minutes: number, work: () => Promise<T>): Promise<T> {
  return await within(name, minutes, work).catch((error) => {
    if (!(error instanceof TimeLimitError)) throw error;
    console.error(error.message);
    process.exit(1);
  });
}
