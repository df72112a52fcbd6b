import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { agentEnvironment, agentOptions } from "../packages/agent/src/launch.ts";
import { AgentProcess } from "./agent-process.ts";
import { type Figure, percentile } from "./figures.ts";
import { RuntimeProcess } from "./runtime-client.ts";

const PODS = 110;
const CONTAINERS = 2;

interface Setting {
  name: string;
  flags(runtime: RuntimeProcess): Record<string, string>;
}

/** The agent returns the memory of its start ten seconds after it. */
const AFTER_START_MS = 15_000;

/** Upper bounds, in milliseconds, MiB and percent of one CPU. */
const budgets = { start: 250, rss: 78, cpu: 0.2 };

/** What an agent costs each node: with everything on beside 110 pods, and with nothing to do. */
export const settings: readonly Setting[] = [
  {
    name: `${PODS} pods, default settings`,
    flags: ({ socket }) => ({ lifecycle: "true", "runtime-endpoint": socket }),
  },
  {
    name: "nothing to do",
    flags: () => ({
      lifecycle: "false",
      eviction: "false",
      "reporting-in-tree-plugins": "-system-reporter-plugin",
    }),
  },
];

/** Start-up, memory and idle CPU of the whole agent as a process, with the embedded API server in another. */
export async function benchFootprint(quick: boolean): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const setting of settings) figures.push(...(await measure(setting, quick)));
  return figures;
}

async function measure({ name, flags }: Setting, quick: boolean): Promise<Figure[]> {
  const starts: number[] = [];
  const rss: number[] = [];
  let idlePercent = 0;
  const rounds = quick ? 3 : 7;
  for (let round = 0; round < rounds; round++) {
    const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
    await server.start();
    server.seedNode("bench");
    const runtime = await new RuntimeProcess(PODS, CONTAINERS, "on").ready();
    const agent = new AgentProcess();
    await server.writeKubeconfig(agent.kubeconfig);
    try {
      starts.push(await agent.start(flags(runtime), { nodeArgs: agentOptions, env: agentEnvironment }));
      await systemClock.sleep(AFTER_START_MS);
      rss.push(agent.rssMb());
      if (round < rounds - 1) continue;
      const seconds = quick ? 20 : 60;
      const before = agent.cpuSeconds();
      await systemClock.sleep(seconds * 1_000);
      idlePercent = ((agent.cpuSeconds() - before) / seconds) * 100;
      rss.push(agent.rssMb());
    } finally {
      await agent.remove();
      runtime.stop();
      await server.stop();
    }
  }
  return [
    {
      name: `start to ready, median: ${name}`,
      value: percentile(starts, 0.5),
      unit: "ms",
      budget: budgets.start,
    },
    { name: `RSS, median: ${name}`, value: percentile(rss, 0.5), unit: "MB", budget: budgets.rss },
    { name: `idle CPU: ${name}`, value: idlePercent, unit: "% of one", budget: budgets.cpu },
  ];
}
