import { readdir } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { metricTable, type Registry } from "@nodekeeper/core/lib";

/**
 * Registers nodekeeper_build_info and process metrics under the names that Prometheus client libraries share.
 * prom-client's default collectors are not used: they keep a 10 ms timer for event loop delay and observe every garbage
 * collection, which costs an idle agent CPU time. Here each value is read only when it is scraped: CPU, resident
 * memory, open file descriptors, start time, event loop lag at the scrape, and event loop busy seconds, which also show
 * stalls between scrapes.
 */
export function createBaseMetrics(registry: Registry, version: string): void {
  const { gauge, scraped, scrapedTotal } = metricTable(registry, "");
  gauge("nodekeeper_build_info", "Always 1; the labels have the agent's and Node's versions.", [
    "version",
    "node_version",
  ]).set({ version, node_version: process.version }, 1);
  gauge("process_start_time_seconds", "When the process started, seconds since the epoch.").set(
    performance.timeOrigin / 1000,
  );
  scrapedTotal("process_cpu_seconds_total", "CPU time of the process, user and system.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  scrapedTotal(
    "nodekeeper_event_loop_busy_seconds_total",
    "Time in which the event loop ran code instead of waiting.",
    () => performance.eventLoopUtilization().active / 1000,
  );
  scraped("process_resident_memory_bytes", "Resident memory of the process.", () =>
    process.memoryUsage.rss(),
  );
  scraped("process_open_fds", "Open file descriptors; absent if /proc is not mounted.", async () => {
    const open = await readdir("/proc/self/fd").catch(() => undefined);
    // Excludes the descriptor of the listing itself.
    return open && open.length - 1;
  });
  scraped("nodejs_eventloop_lag_seconds", "Delay of a due callback at the scrape.", async () => {
    const start = performance.now();
    await new Promise((resolve) => setImmediate(resolve));
    return (performance.now() - start) / 1000;
  });
}
