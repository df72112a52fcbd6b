import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentFlags } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { argumentsOf, type ScriptProcess, startScript } from "./support/processes.ts";

const DRIVER = "accelerators.example.com";

let cluster: TestCluster;
let kubelet: DraKubelet;
// Short, for the sockets of plugins.
let directory: string;
let flags: Record<string, string>;
const agents: ScriptProcess[] = [];
const drivers: Plugin[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkr-"));
  cluster = await startCluster();
  kubelet = new DraKubelet(join(directory, "reg"));
  flags = {
    ...agentFlags(cluster),
    rollingUpdate: "true",
    pluginDirectories: join(directory, "plugins"),
    serverAddress: `127.0.0.1:${await freePort()}`,
    devicesKubeletPluginEnabled: "true",
    devicesKubeletPluginRegistryDirectory: join(directory, "reg"),
    devicesKubeletPluginCdiDirectory: join(directory, "cdi"),
  };
  mkdirSync(flags.pluginDirectories!, { recursive: true });
});

afterEach(async () => {
  for (const agent of agents) agent.kill("SIGKILL");
  await Promise.all(agents.splice(0).map(({ ended }) => ended));
  kubelet[Symbol.dispose]();
  await Promise.all(drivers.splice(0).map((driver) => driver.stop()));
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
});

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function startAgent(more: Record<string, string> = {}): ScriptProcess {
  const agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf({ ...flags, ...more })]);
  agents.push(agent);
  return agent;
}

/** Waits until an agent has written a log message so many times. */
async function untilLogged(agent: ScriptProcess, message: string, times = 1): Promise<void> {
  await until(message, () => agent.output().split(`"msg":"${message}"`).length > times, {
    explain: agent.output,
  });
}

async function serve(): Promise<void> {
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: flags.pluginDirectories!,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }] }];
    },
    prepare: ({ devices }) =>
      devices.map(({ request, pool, device }) => ({ request, pool, device, edits: { env: { A: "b" } } })),
    unprepare: () => {},
  });
  drivers.push(driver);
  await driver.ready;
}

/** Stores a claim for monitoring, which shares its device, and gives it as the kubelet names it. */
function claim(name: string) {
  const results = [{ request: "req", driver: DRIVER, pool: NODE, device: "device-0", adminAccess: true }];
  const { metadata } = cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: {},
    status: { allocation: { devices: { results } } },
  });
  return { namespace: "default", name, uid: metadata.uid! };
}

/** Prepares one claim after the other as the kubelet does, until it is stopped; returns the errors. */
function keepPreparing(): { count(): number; stop(): Promise<string[]> } {
  const errors: string[] = [];
  let isOver = false;
  let count = 0;
  const done = (async () => {
    while (!isOver) {
      const wanted = claim(`claim-${count}`);
      // Like the kubelet, it registers what is there and calls the newest; it does not wait for a registration.
      const answer = (await kubelet.register()).has(DRIVER)
        ? (await kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error
        : `DRA driver ${DRIVER} is not registered`;
      if (answer !== "") errors.push(answer);
      count++;
      await sleep(20);
    }
  })();
  done.catch((error) => errors.push(String(error)));
  return {
    count: () => count,
    async stop() {
      isOver = true;
      await done.catch(() => {});
      return errors;
    },
  };
}

it("a second agent takes over from the first: no call of the kubelet fails", async () => {
  const first = startAgent();
  await serve();
  await kubelet.untilRegistered(DRIVER);
  const preparing = keepPreparing();
  await until("some are prepared", () => preparing.count() > 3);
  const second = startAgent();
  await untilLogged(second, "registered with the kubelet");
  await untilLogged(first, "handed over, waiting until the state directory is free again");
  await untilLogged(second, "status server is listening");
  await untilLogged(second, "plugin registered");
  const before = preparing.count();
  await until("more are prepared", () => preparing.count() > before + 3);
  first.kill("SIGTERM");
  expect(await first.ended).toBe(0);
  expect(await preparing.stop()).toEqual([]);
  second.kill("SIGTERM");
  expect(await second.ended).toBe(0);
  expect(kubelet.sockets()).toEqual([]);
});

it("an agent that has handed over starts again if the other one is killed", async () => {
  const first = startAgent();
  await untilLogged(first, "status server is listening");
  const second = startAgent();
  await untilLogged(second, "status server is listening");
  await untilLogged(first, "handed over, waiting until the state directory is free again");
  // A request to reload its configuration does not end it meanwhile.
  first.kill("SIGHUP");
  second.kill("SIGKILL");
  await untilLogged(first, "status server is listening", 2);
  const third = startAgent();
  await untilLogged(third, "status server is listening");
});

it("an agent that takes over and can't start leaves no socket in the kubelet's registry", async () => {
  const first = startAgent();
  await serve();
  await kubelet.untilRegistered(DRIVER);
  const preparing = keepPreparing();
  const second = startAgent({ kubeconfig: join(directory, "missing") });
  await untilLogged(first, "handed over, waiting until the state directory is free again");
  first.kill("SIGTERM");
  expect(await second.ended).not.toBe(0);
  expect(second.output()).toContain("registered with the kubelet");
  await first.ended;
  await preparing.stop();
  expect(kubelet.sockets()).toEqual([]);
});

it("a first agent that does not hand over is waited for", async () => {
  const first = startAgent({ rollingUpdate: "false" });
  await untilLogged(first, "status server is listening");
  const second = startAgent();
  await untilLogged(second, "the other agent did not hand over, waiting until it exits");
  second.kill("SIGHUP");
  first.kill("SIGTERM");
  await untilLogged(second, "status server is listening");
});
