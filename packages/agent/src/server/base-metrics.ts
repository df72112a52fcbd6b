import { readdir } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";

/**
 * Registers nodekeeper_build_info and metrics of the process, under the names that Prometheus client libraries share.
 * Not prom-client's default collectors: those keep a 10 ms timer for the event loop's delay and observe every garbage
 * collection, which costs an idle agent CPU time. Here each value is read only when it is scraped:
 * CPU, resident memory, open files, start time, the event loop's lag at the scrape, and its busy seconds, which show
 * stalls between scrapes too.
 */
export function createBaseMetrics(registry: Registry, version: string): void {
  const registers = [registry];
  new Gauge({
    name: "nodekeeper_build_info",
    help: "Always 1; the labels have the agent's and Node's versions.",
    labelNames: ["version", "node_version"],
    registers,
  }).set({ version, node_version: process.version }, 1);

  new Gauge({
    name: "process_start_time_seconds",
    help: "When the process started, seconds since the epoch.",
    registers,
  }).set(performance.timeOrigin / 1000);

  scrapedCounter(registers, "process_cpu_seconds_total", "CPU time of the process, user and system.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  scrapedCounter(
    registers,
    "nodekeeper_event_loop_busy_seconds_total",
    "Time in which the event loop ran code instead of waiting.",
    () => performance.eventLoopUtilization().active / 1000,
  );
  new Gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory of the process.",
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: "process_open_fds",
    help: "Open file descriptors; absent where /proc is not mounted.",
    registers,
    async collect() {
      const open = await readdir("/proc/self/fd").catch(() => undefined);
      // The listing's own descriptor is among them.
      if (open) this.set(open.length - 1);
    },
  });
  new Gauge({
    name: "nodejs_eventloop_lag_seconds",
    help: "How long a callback that was due had to wait, at the scrape.",
    registers,
    async collect() {
      const start = performance.now();
      await new Promise((resolve) => setImmediate(resolve));
      this.set((performance.now() - start) / 1000);
    },
  });
}

function scrapedCounter(registers: Registry[], name: string, help: string, total: () => number): void {
  new Counter({
    name,
    help,
    registers,
    collect() {
      this.reset();
      this.inc(total());
    },
  });
}
