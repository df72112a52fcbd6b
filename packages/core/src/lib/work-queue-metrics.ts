import { Counter, Gauge, Histogram, type Registry } from "./metrics.ts";

/** Metrics of work queues, labelled with the queue's name. Names and meanings follow client-go's. */
export interface WorkQueueMetrics {
  added(name: string): void;
  retried(name: string): void;
  refused(name: string): void;
  depth(name: string, keys: number): void;
  started(name: string, queuedSeconds: number): void;
  finished(name: string, workedSeconds: number): void;
  /** Asks `running` at each scrape for how long each key in work has been so, seconds. */
  watch(name: string, running: () => number[]): void;
  unwatch(name: string): void;
}

// client-go has 10 ns to 10 s by tens. Each bucket is two series for each queue.
const seconds = [0.01, 0.1, 1, 10];

/** The metrics of all work queues of a registry. Call it once for each registry. */
export function createWorkQueueMetrics(registry: Registry): WorkQueueMetrics {
  const watched = new Map<string, () => number[]>();
  const common = { labelNames: ["name"], registers: [registry] };
  const prefix = "nodekeeper_workqueue_";
  const depth = new Gauge({ name: `${prefix}depth`, help: "Keys ready for a worker.", ...common });
  const adds = new Counter({ name: `${prefix}adds_total`, help: "Keys added.", ...common });
  const retries = new Counter({
    name: `${prefix}retries_total`,
    help: "Keys added with backoff.",
    ...common,
  });
  const refusals = new Counter({
    name: `${prefix}refused_total`,
    help: "Keys refused because the queue was full.",
    ...common,
  });
  const queued = new Histogram({
    name: `${prefix}queue_duration_seconds`,
    help: "How long a key was queued before work on it started.",
    buckets: seconds,
    ...common,
  });
  const worked = new Histogram({
    name: `${prefix}work_duration_seconds`,
    help: "How long work on a key took.",
    buckets: seconds,
    ...common,
  });
  new Gauge({
    name: `${prefix}unfinished_work_seconds`,
    help: "Total time that work on the keys in work has taken so far. A steady rise means that a worker is stuck.",
    ...common,
    collect() {
      for (const [name, running] of watched)
        this.set(
          { name },
          running().reduce((sum, value) => sum + value, 0),
        );
    },
  });
  new Gauge({
    name: `${prefix}longest_running_processor_seconds`,
    help: "How long the longest work in progress has taken so far.",
    ...common,
    collect() {
      for (const [name, running] of watched) this.set({ name }, Math.max(0, ...running()));
    },
  });
  return {
    added: (name) => adds.inc({ name }),
    retried: (name) => retries.inc({ name }),
    refused: (name) => refusals.inc({ name }),
    depth: (name, keys) => depth.set({ name }, keys),
    started: (name, queuedSeconds) => queued.observe({ name }, queuedSeconds),
    finished: (name, workedSeconds) => worked.observe({ name }, workedSeconds),
    watch: (name, running) => void watched.set(name, running),
    unwatch: (name) => void watched.delete(name),
  };
}
