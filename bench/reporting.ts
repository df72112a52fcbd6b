import { systemClock } from "@nodekeeper/core/lib";
import { type Figure, percentile } from "./figures.ts";
import { withCluster } from "./reporting-cluster.ts";

const PLUGINS = 50;

/** The budgets of reporting: latency and pacing under trouble, start, memory, idle CPU. */
export async function benchReporting(quick: boolean): Promise<Figure[]> {
  return [
    ...(await benchStart(quick)),
    ...(await benchIdle(quick)),
    ...(await benchTrouble(quick)),
    ...(await benchMemory(quick)),
  ];
}

async function benchStart(quick: boolean): Promise<Figure[]> {
  const times: number[] = [];
  for (let round = 0; round < (quick ? 3 : 7); round++) {
    await withCluster(async ({ agent }) => void times.push(await agent.start()));
  }
  return [
    { name: "start to ready, median", value: percentile(times, 0.5), unit: "ms", budget: 500 },
    { name: "start to ready, slowest", value: Math.max(...times), unit: "ms" },
  ];
}

async function benchIdle(quick: boolean): Promise<Figure[]> {
  return await withCluster(async ({ agent, startPlugins }) => {
    await agent.start();
    await startPlugins(10, 3_600_000);
    await systemClock.sleep(5_000);
    const seconds = quick ? 15 : 60;
    const before = agent.cpuSeconds();
    await systemClock.sleep(seconds * 1000);
    const percent = ((agent.cpuSeconds() - before) / seconds) * 100;
    return [{ name: "idle CPU, 10 quiet plugins", value: percent, unit: "% of one", budget: 1 }];
  });
}

async function benchTrouble(quick: boolean): Promise<Figure[]> {
  return await withCluster(async ({ agent, startPlugins, seen, patchTimes, server }) => {
    await agent.start();
    const plugins = await startPlugins(PLUGINS, 500, ["flood", "hung"]);
    await systemClock.sleep(5_000);
    seen.delays.length = 0;
    patchTimes.length = 0;
    const seconds = quick ? 10 : 60;
    const before = agent.cpuSeconds();
    await systemClock.sleep(seconds * 1000);
    const cpu = ((agent.cpuSeconds() - before) / seconds) * 100;
    const delays = [...seen.delays];
    const fastest = busiestSecond(patchTimes);
    const last = await plugins.finish();
    await systemClock.sleep(3_000);
    const object = server.store.get("customnoderesources.node.katalyst.kubewharf.io", "bench");
    const { capacity = {} } =
      (object?.status as { resources?: { capacity?: Record<string, string> } })?.resources ?? {};
    const lost = Object.entries(last).filter(
      ([name, value]) => Number(capacity[`bench.io/${name}`]) !== value,
    );
    return [
      { name: "change to API write, p50", value: percentile(delays, 0.5), unit: "ms" },
      { name: "change to API write, p99", value: percentile(delays, 0.99), unit: "ms", budget: 300 },
      { name: "change to API write, max", value: Math.max(0, ...delays), unit: "ms" },
      { name: "changes measured", value: delays.length, unit: "" },
      { name: "writes in the busiest second", value: fastest, unit: "", budget: 5 },
      { name: `final values lost, of ${Object.keys(last).length}`, value: lost.length, unit: "", budget: 0 },
      { name: "CPU with the flood", value: cpu, unit: "% of one" },
      { name: "RSS after the flood", value: agent.rssMb(), unit: "MB" },
    ];
  });
}

async function benchMemory(quick: boolean): Promise<Figure[]> {
  return await withCluster(async ({ agent, startPlugins }) => {
    await agent.start();
    await startPlugins(PLUGINS, 500);
    const minutes = quick ? 0.5 : 5;
    await systemClock.sleep(minutes * 60_000);
    return [
      { name: `RSS after ${minutes} min, ${PLUGINS} plugins`, value: agent.rssMb(), unit: "MB", budget: 100 },
    ];
  });
}

/** The most events that any window of one second holds. */
function busiestSecond(times: readonly number[]): number {
  let most = 0;
  for (let from = 0, to = 0; to < times.length; to++) {
    while (times[to]! - times[from]! >= 1_000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}
