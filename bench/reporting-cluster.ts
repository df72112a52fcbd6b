import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer, type ReceivedRequest } from "@nodekeeper/testing";
import { AgentProcess } from "./agent-process.ts";

/** Plugins of one process: see plugins-process.ts. */
export interface Plugins {
  /** Ends the changes; answers the last value of each plugin. */
  finish(): Promise<Record<string, number>>;
}

/** An API server, an agent that has not been started, and reporter plugins for it. */
export interface Cluster {
  agent: AgentProcess;
  server: ReturnType<typeof createDevApiServer>;
  /** Delays of the changes of well-behaved plugins, milliseconds. */
  seen: { delays: number[] };
  /** Milliseconds of Unix time from which the values of plugins count. */
  epoch: number;
  /** When the CustomNodeResource was written. */
  patchTimes: number[];
  /**
   * Starts plugins in the agent's plugin directory, each of which reports another value in each interval.
   * @param others further plugins: one that reports a hundred times in 10 ms, and one that never answers
   */
  startPlugins(count: number, intervalMs: number, others?: readonly ("flood" | "hung")[]): Promise<Plugins>;
}

/** Removes what it made when the work has ended. */
export async function withCluster<T>(work: (cluster: Cluster) => Promise<T>): Promise<T> {
  const epoch = Date.now();
  const seen = { delays: [] as number[], values: new Map<string, number>() };
  const patchTimes: number[] = [];
  const server = createDevApiServer({
    checkFields: false,
    clock: systemClock,
    log: silentLogger,
    onRequest: (request) => record(request, epoch, seen, patchTimes),
  });
  await server.start();
  const agent = new AgentProcess();
  await server.writeKubeconfig(agent.kubeconfig);
  const children: ChildProcess[] = [];
  const startPlugins: Cluster["startPlugins"] = async (count, intervalMs, others = []) => {
    const script = fileURLToPath(new URL("./plugins-process.ts", import.meta.url));
    const args = [agent.plugins, String(count), String(intervalMs), String(epoch), ...others];
    const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    return {
      async finish() {
        child.kill("SIGUSR2");
        const [chunk] = await once(child.stdout!, "data");
        return JSON.parse(String(chunk)) as Record<string, number>;
      },
    };
  };
  try {
    return await work({ agent, server, seen, epoch, patchTimes, startPlugins });
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await agent.remove();
    await server.stop();
  }
}

function record(
  { method, path, body }: ReceivedRequest,
  epoch: number,
  seen: { delays: number[]; values: Map<string, number> },
  patchTimes: number[],
): void {
  if (method !== "PATCH" || !path.includes("/customnoderesources/bench")) return;
  const now = Date.now();
  patchTimes.push(now);
  const { status } = body as { status?: { resources?: { capacity?: Record<string, string> } } };
  for (const [name, text] of Object.entries(status?.resources?.capacity ?? {})) {
    if (!name.startsWith("bench.io/")) continue;
    const value = Number(text);
    if (seen.values.get(name) === value) continue;
    seen.values.set(name, value);
    if (name !== "bench.io/flood") seen.delays.push(now - epoch - value);
  }
}
