import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { PodLifecycleClient, type PodLifecycleItem } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freePort } from "../e2e/support/free-port.ts";
import { agentFlags, statusReader } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";

// The agent as a process whose state directory is restored from a copy while it does not run.
let cluster: TestCluster;
let runtime: SimulatedRuntime;
let cri: SimulatedCri;
let client: PodLifecycleClient;
let agent: ScriptProcess | undefined;
let flags: Record<string, string>;

beforeEach(async () => {
  cluster = await startCluster();
  runtime = new SimulatedRuntime({ clock: systemClock });
  cri = new SimulatedCri({ runtime, socket: join(cluster.directory, "cri.sock"), clock: systemClock });
  await cri.start();
  flags = {
    ...agentFlags(cluster),
    lifecycle: "true",
    runtimeEndpoint: cri.socket,
    serverAddress: `127.0.0.1:${await freePort()}`,
  };
  client = new PodLifecycleClient({ socket: flags.apiSocket! });
});

afterEach(async () => {
  client.close();
  await end("SIGKILL");
  await cri.stop();
  await cluster.stop();
});

async function start(): Promise<void> {
  agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(flags)]);
  const reader = statusReader(flags.serverAddress!);
  await until("it is ready", async () => (await reader.ready().catch(() => undefined))?.status === 200, {
    explain: agent.output,
  });
}

async function end(signal: NodeJS.Signals): Promise<void> {
  agent?.kill(signal);
  await agent?.ended;
}

async function runPod(name: string): Promise<void> {
  const sandbox = runtime.runSandbox({ uid: `uid-${name}`, name, namespace: "default" });
  runtime.runContainer(sandbox, { name: "app" });
  await until(`the pod ${name}`, async () => {
    const pods = await client.getPods();
    return pods.some((pod) => pod.name === name && pod.containers.some(({ state }) => state === "running"));
  });
}

/** The first item after a cursor; without one, the snapshot with the position of now. */
async function itemAfter(cursor?: string): Promise<PodLifecycleItem> {
  for await (const item of client.watch(cursor === undefined ? {} : { cursor }, new AbortController().signal))
    return item;
  throw new Error("the watch ended without an item");
}

const copy = () => join(cluster.directory, "backup");

function restore(): void {
  rmSync(flags.stateDir!, { recursive: true });
  cpSync(copy(), flags.stateDir!, { recursive: true });
}

it("a consumer whose cursor is later than a restored state directory gets a snapshot, also if the log has passed its cursor again", async () => {
  await start();
  await runPod("a");
  await end("SIGTERM");
  cpSync(flags.stateDir!, copy(), { recursive: true });
  await start();
  await runPod("b");
  const { cursor } = await itemAfter();
  await end("SIGKILL");
  restore();
  await start();
  // More events than the consumer had read.
  for (const name of ["c", "d", "e"]) await runPod(name);
  expect(await itemAfter(cursor)).toMatchObject({ kind: "snapshot" });

  // The same again: the newer one of two copies does not pass for the older one's continuation.
  const second = (await itemAfter()).cursor;
  await end("SIGKILL");
  restore();
  await start();
  for (const name of ["f", "g", "h", "i", "j"]) await runPod(name);
  expect(await itemAfter(second)).toMatchObject({ kind: "snapshot" });
  expect(await itemAfter(cursor)).toMatchObject({ kind: "snapshot" });
});

it.for(["SIGTERM", "SIGKILL"] as const)("a consumer continues at its cursor after %s", async (signal) => {
  await start();
  await runPod("a");
  const { cursor } = await itemAfter();
  await runPod("b");
  await end(signal);
  await start();
  expect(await itemAfter(cursor)).toMatchObject({ kind: "event" });
});
