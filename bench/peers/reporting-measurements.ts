import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { basename, join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { freePort } from "../../test/e2e/support/free-port.ts";
import { percentile } from "../figures.ts";
import { cpuSecondsOf } from "../process-usage.ts";
import { type Cluster, withCluster } from "../reporting-cluster.ts";
import { katalystPlaces } from "./agent-measurements.ts";
import type { AtLeast, Measure, Run } from "./measure.ts";

/** Between two values of a plugin: with 50 plugins, 25 changes a second. */
const INTERVAL_MS = 2_000;
/** Between two values of a single plugin, so that each comes after a quiet time. */
const QUIET_MS = 3_000;
/** Until the plugins are registered and their first values written, at most. */
const SETTLE_MS = 15_000;

interface Values {
  count: number;
  intervalMs: number;
  /** Whether another plugin answers no call. */
  hung?: boolean;
}

interface Written {
  /** Undefined if no value was written. */
  p50: number | undefined;
  p99: number | undefined;
  /** Of one CPU, percent. */
  cpu: number;
  writesPerSecond: number;
  seconds: number;
}

/** From a value of a reporter plugin until the API server has it. */
export const measureReporting: Measure = async (run) => {
  const quiet = await measured(run, { count: 1, intervalMs: QUIET_MS });
  const busy = await measured(run, { count: 50, intervalMs: INTERVAL_MS });
  return {
    "reporting-quiet": written(quiet.p50),
    "reporting-busy": written(busy.p50),
    "reporting-busy-p99": written(busy.p99),
    "reporting-busy-writes": busy.writesPerSecond,
    "reporting-busy-cpu": busy.cpu,
  };
};

/** The same beside a plugin that hangs. The peer may write nothing then. */
export const measureReportingHung: Measure = async (run) => {
  const { p50, seconds } = await measured(run, { count: 49, intervalMs: INTERVAL_MS, hung: true });
  const notWritten: AtLeast | undefined = run.side === "peer" ? { atLeast: seconds * 1_000 } : undefined;
  return { "reporting-hung": p50 ?? notWritten ?? written(p50) };
};

async function measured({ side, peer, plugins, quick }: Run, values: Values): Promise<Written> {
  return await withCluster(async (cluster) => {
    const stop = new AbortController();
    const { directory } = cluster.agent;
    try {
      const pid = side === "agent" ? await ours(cluster) : await theirs(cluster, peer, stop.signal);
      const flags = [
        `-directory=${cluster.agent.plugins}`,
        `-count=${values.count}`,
        `-interval=${values.intervalMs}ms`,
        `-epoch=${cluster.epoch}`,
        ...(values.hung ? ["-hung"] : []),
      ];
      start(plugins, flags, directory, stop.signal);
      await settled(cluster, values.count);
      return await observed(cluster, pid, quick ? 15 : 30);
    } finally {
      stop.abort();
    }
  });
}

/** Waits until as many values are written as there are plugins, and a little longer. */
async function settled({ seen }: Cluster, plugins: number): Promise<void> {
  for (const endsAt = performance.now() + SETTLE_MS; performance.now() < endsAt; await systemClock.sleep(100))
    if (seen.delays.length >= plugins) break;
  await systemClock.sleep(3_000);
}

async function observed({ seen, patchTimes }: Cluster, pid: number, seconds: number): Promise<Written> {
  seen.delays.length = 0;
  patchTimes.length = 0;
  const before = cpuSecondsOf(pid);
  await systemClock.sleep(seconds * 1_000);
  const cpu = ((cpuSecondsOf(pid) - before) / seconds) * 100;
  const at = (share: number) => (seen.delays.length > 0 ? percentile(seen.delays, share) : undefined);
  return { p50: at(0.5), p99: at(0.99), cpu, writesPerSecond: patchTimes.length / seconds, seconds };
}

function written(ms: number | undefined): number {
  if (ms === undefined) throw new Error("nothing was written");
  return ms;
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
