import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { AgentProcess } from "./agent-process.ts";
import type { Figure } from "./figures.ts";
import { settings } from "./footprint.ts";
import { type HeapSnapshot, heapAccountOf } from "./heap-account.ts";
import { type Account, accountOf } from "./memory-account.ts";
import { RuntimeProcess } from "./runtime-client.ts";

const PODS = 110;
const CONTAINERS = 2;
const HEAP_FILE = "HEAP_ACCOUNT_FILE";
const SNAPSHOT = ".heapsnapshot";
// Plain JavaScript, because Node's compiler of TypeScript would be part of the account.
const WRITE_HEAP = `
import { renameSync, writeFileSync } from "node:fs";
import { getHeapCodeStatistics, getHeapSpaceStatistics, writeHeapSnapshot } from "node:v8";
process.on("SIGUSR2", () => {
  const [spaces, code, memory] = [getHeapSpaceStatistics(), getHeapCodeStatistics(), process.memoryUsage()];
  const file = process.env.${HEAP_FILE};
  writeHeapSnapshot(file + "${SNAPSHOT}");
  writeFileSync(file + ".new", JSON.stringify({ spaces, code, memory }));
  renameSync(file + ".new", file);
});`;
const NODE_ARGS = ["--import", `data:text/javascript,${encodeURIComponent(WRITE_HEAP)}`];

/**
 * Where the memory of an agent with 110 pods is, of one with nothing to do, and of an empty process of Node, each after
 * a minute (`quick`: 15 s).
 */
export async function benchMemory(quick: boolean): Promise<Figure[]> {
  const settleMs = quick ? 15_000 : 60_000;
  const figures: Figure[] = [];
  for (const { name, flags } of settings) {
    figures.push(...figuresOf(name, await withAgent(flags, settleMs)));
  }
  return [...figures, ...figuresOf("an empty process", await withEmptyProcess())];
}

function figuresOf(name: string, account: Account): Figure[] {
  return Object.entries(account).map(([row, value]) => ({ name: `${name}: ${row}`, value, unit: "MB" }));
}

async function withAgent(
  flags: (runtime: RuntimeProcess) => Record<string, string>,
  settleMs: number,
): Promise<Account> {
  const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
  await server.start();
  server.seedNode("bench");
  const runtime = await new RuntimeProcess(PODS, CONTAINERS, "on").ready();
  const agent = new AgentProcess();
  await server.writeKubeconfig(agent.kubeconfig);
  const file = join(agent.directory, "heap.json");
  try {
    await agent.start(flags(runtime), { nodeArgs: NODE_ARGS, env: { [HEAP_FILE]: file } });
    await systemClock.sleep(settleMs);
    return await accountOfProcess(agent.pid, file);
  } finally {
    await agent.remove();
    runtime.stop();
    await server.stop();
  }
}

async function withEmptyProcess(): Promise<Account> {
  const directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  const file = join(directory, "heap.json");
  const idle = spawn(process.execPath, [...NODE_ARGS, "-e", "setInterval(() => {}, 1e6)"], {
    env: { ...process.env, [HEAP_FILE]: file },
  });
  try {
    await systemClock.sleep(2_000);
    return await accountOfProcess(idle.pid!, file);
  } finally {
    idle.kill();
    rmSync(directory, { recursive: true });
  }
}

async function accountOfProcess(pid: number, file: string): Promise<Account> {
  // Before the process writes, which takes memory too.
  const smaps = readFileSync(`/proc/${pid}/smaps`, "utf8");
  process.kill(pid, "SIGUSR2");
  while (!existsSync(file)) await systemClock.sleep(20);
  const snapshot: HeapSnapshot = JSON.parse(readFileSync(`${file}${SNAPSHOT}`, "utf8"));
  return { ...accountOf(smaps, JSON.parse(readFileSync(file, "utf8"))), ...heapAccountOf(snapshot) };
}
