import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { basename, join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { buildGo, requiredVersion } from "../../test/e2e/prepare/go-build.ts";
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
  const plugins = await buildPlugins();
  const measured = async (count: number, intervalMs: number) =>
    await withCluster(async (cluster) => {
      const stop = new AbortController();
      const { directory } = cluster.agent;
      try {
        const pid = side === "agent" ? await ours(cluster) : await theirs(cluster, peer, stop.signal);
        const flags = [`-count=${count}`, `-interval=${intervalMs}ms`, `-epoch=${cluster.epoch}`];
        start(plugins, [`-directory=${cluster.agent.plugins}`, ...flags], directory, stop.signal);
        return await figures(cluster, pid, quick ? 20 : 45);
      } finally {
        stop.abort();
      }
    });
  const quiet = await measured(1, QUIET_MS);
  const busy = await measured(50, INTERVAL_MS);
  return {
    "reporting-quiet": quiet.p50!,
    "reporting-busy": busy.p50!,
    "reporting-busy-p99": busy.p99!,
    "reporting-busy-cpu": busy.cpu!,
  };
};

async function buildPlugins(): Promise<string> {
  const module = join(import.meta.dirname, "katalyst");
  const version = requiredVersion(module, "github.com/kubewharf/katalyst-core");
  const part = await buildGo({ name: "peer-katalyst-plugins", module, package: "./plugins", version });
  if ("missing" in part) throw new Error(`the plugins cannot be built: ${part.missing}`);
  return part.path;
}

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

async function ours({ agent }: Cluster): Promise<number> {
  await agent.start({ "reporting-in-tree-plugins": "-system-reporter-plugin", eviction: "false" });
  return agent.pid;
}

async function theirs({ agent }: Cluster, peer: string, signal: AbortSignal): Promise<number> {
  const { directory, plugins, kubeconfig } = agent;
  const places = katalystPlaces({ kubeconfig, directory, plugins, port: await freePort() });
  const flags = [
    "--agents=katalyst-agent-reporter",
    "--reporter-plugins=-system-reporter-plugin,-kubelet-reporter-plugin",
    "--metric-provisioners=kubelet",
    // Nodekeeper's in these rows. By the client's default, the peer would fall behind 25 values a second.
    "--kube-api-qps=100",
    "--kube-api-burst=200",
  ];
  return start(peer, [...flags, ...places], directory, signal);
}

/** Starts a program with its log in a directory, until the signal aborts. Returns its process ID. */
function start(program: string, args: readonly string[], directory: string, signal: AbortSignal): number {
  const log = openSync(join(directory, `${basename(program)}.log`), "a");
  const child = spawn(program, args, { stdio: ["ignore", log, log], signal, killSignal: "SIGKILL" });
  child.once("error", () => {});
  return child.pid!;
}
