import { type ChildProcess, spawn } from "node:child_process";
import { systemClock } from "@nodekeeper/core/lib";
import { freePort } from "../../test/e2e/support/free-port.ts";
import { percentile } from "../figures.ts";
import { cpuSecondsOf } from "../process-usage.ts";
import { type Cluster, withCluster } from "../reporting-cluster.ts";
import { katalystPlaces } from "./agent-measurements.ts";
import type { Figures, Measure } from "./measure.ts";

/** Between two values of a plugin: with 50 plugins, 25 changes a second. */
const INTERVAL_MS = 2_000;
/** Between two values of a single plugin, so that each comes after a quiet time. */
const QUIET_MS = 3_000;
/** Until the plugins are registered and their first values written. */
const SETTLE_MS = 15_000;

/** From a value of a reporter plugin until the API server has it. */
export const measureReporting: Measure = async ({ side, peer, quick }) => {
  const measured = async (count: number, intervalMs: number, others: readonly "hung"[] = []) =>
    await withCluster(async (cluster) => {
      const agent = side === "agent" ? await ours(cluster) : await theirs(cluster, peer);
      try {
        await cluster.startPlugins(count, intervalMs, others);
        return await figures(cluster, agent.pid, quick ? 20 : 60);
      } finally {
        agent.stop();
      }
    });
  const quiet = await measured(1, QUIET_MS);
  const busy = await measured(50, INTERVAL_MS);
  const besideHung = await measured(49, INTERVAL_MS, ["hung"]);
  return {
    "reporting-quiet": quiet.p50!,
    "reporting-busy": busy.p50!,
    "reporting-busy-p99": busy.p99!,
    "reporting-busy-cpu": busy.cpu!,
    "reporting-hung": besideHung.p50!,
  };
};

async function figures({ seen, server }: Cluster, pid: number, seconds: number): Promise<Figures> {
  await systemClock.sleep(SETTLE_MS);
  if (!server.store.get("customnoderesources.node.katalyst.kubewharf.io", "bench"))
    throw new Error("nothing was written");
  seen.delays.length = 0;
  const before = cpuSecondsOf(pid);
  await systemClock.sleep(seconds * 1_000);
  const cpu = ((cpuSecondsOf(pid) - before) / seconds) * 100;
  return { p50: percentile(seen.delays, 0.5), p99: percentile(seen.delays, 0.99), cpu };
}

interface Started {
  pid: number;
  stop(): void;
}

async function ours({ agent }: Cluster): Promise<Started> {
  await agent.start({ "reporting-in-tree-plugins": "-system-reporter-plugin", eviction: "false" });
  return { pid: agent.pid, stop: () => {} };
}

async function theirs(
  { agent: { directory, plugins, kubeconfig } }: Cluster,
  peer: string,
): Promise<Started> {
  const port = await freePort();
  const child: ChildProcess = spawn(
    peer,
    [
      "--agents=katalyst-agent-reporter",
      "--reporter-plugins=-system-reporter-plugin,-kubelet-reporter-plugin",
      ...katalystPlaces({ kubeconfig, directory, plugins, port }),
    ],
    { stdio: "ignore" },
  );
  await systemClock.sleep(2_000);
  return { pid: child.pid!, stop: () => child.kill("SIGKILL") };
}
