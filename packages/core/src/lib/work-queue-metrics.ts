import { metricTable, type Registry } from "./metrics.ts";

// client-go uses powers of ten from 10 ns to 10 s. Each bucket adds two series per queue.
const seconds = [0.01, 0.1, 1, 10];

/**
 * Creates the metrics of all work queues of a registry, labeled with the queue's name. Names and meanings follow
 * client-go.
 */
export function createWorkQueueMetrics(registry: Registry) {
  const watched = new Map<string, () => number[]>();
  const { counter, gauge, histogram, scrapedBy } = metricTable(registry, "nodekeeper_workqueue_");
  const depth = gauge("depth", "Keys ready for a worker.", ["name"]);
  const adds = counter("adds_total", "Keys added.", ["name"]);
  const retries = counter("retries_total", "Keys added with backoff.", ["name"]);
  const refusals = counter("refused_total", "Keys refused because the queue was full.", ["name"]);
  const queued = histogram(
    "queue_duration_seconds",
    "How long a key was queued before work on it started.",
    seconds,
    ["name"],
  );
  const worked = histogram("work_duration_seconds", "How long work on a key took.", seconds, ["name"]);
  const running = (name: string, help: string, total: (seconds: number[]) => number) =>
    scrapedBy(name, help, ["name"], () => [...watched].map(([name, read]) => [{ name }, total(read())]));
  running(
    "unfinished_work_seconds",
    "Total time that work on the keys in work has taken so far. A steady rise means that a worker is stuck.",
    (times) => times.reduce((sum, value) => sum + value, 0),
  );
  running(
    "longest_running_processor_seconds",
    "How long the longest work in progress has taken so far.",
    (times) => Math.max(0, ...times),
  );
  return {
    added: (name: string) => adds.inc({ name }),
    retried: (name: string) => retries.inc({ name }),
    refused: (name: string) => refusals.inc({ name }),
    depth: (name: string, keys: number) => depth.set({ name }, keys),
    started: (name: string, queuedSeconds: number) => queued.observe({ name }, queuedSeconds),
    finished: (name: string, workedSeconds: number) => worked.observe({ name }, workedSeconds),
    /** Calls `read` on each scrape. It returns the time spent so far on each key in progress, in seconds. */
    watch: (name: string, read: () => number[]) => void watched.set(name, read),
    unwatch: (name: string) => void watched.delete(name),
  };
}

export type WorkQueueMetrics = ReturnType<typeof createWorkQueueMetrics>;
