import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";

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

/**
 * Runs a benchmark. If it takes longer than its limit, prints that, kills the processes that it started, and exits
 * with 1: a benchmark that waits for something that never happens must not hang.
 */
export async function withTimeLimit<T>(name: string, minutes: number, work: () => Promise<T>): Promise<T> {
  const started = new Set<ChildProcess>();
  subscribe("child_process", (message) => started.add((message as { process: ChildProcess }).process));
  const timer = setTimeout(() => {
    console.error(`The benchmark ${name} did not finish within ${minutes} minutes.`);
    for (const child of started) child.kill("SIGKILL");
    process.exit(1);
  }, minutes * 60_000);
  return await work().finally(() => clearTimeout(timer));
}
