import { existsSync } from "node:fs";
import { join } from "node:path";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { PodLifecycleClient, type PodLifecycleItem } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { runCommand } from "../packages/agent/src/cli/testing/run-command.ts";
import { ContainerKiller } from "../packages/agent/src/eviction/index.ts";
import { testPolicy } from "../packages/agent/src/eviction/testing/rounds.ts";
import { PodLifecycleEventGenerator, type PodStatusReader } from "../packages/agent/src/lifecycle/index.ts";
import { CriRuntime } from "../packages/agent/src/runtime/index.ts";
import { LifecycleStore, StateDatabase } from "../packages/agent/src/state/index.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

let cluster: TestCluster;
let runtime: SimulatedRuntime;
let cri: SimulatedCri;
let agent: RunningAgent;
let client: PodLifecycleClient;
let socket: string;

beforeEach(async () => {
  cluster = await startCluster();
  runtime = new SimulatedRuntime({ clock: systemClock });
  cri = new SimulatedCri({ runtime, socket: join(cluster.directory, "cri.sock"), clock: systemClock });
  socket = join(cluster.directory, "agent.sock");
  client = new PodLifecycleClient({ socket });
});
afterEach(async () => {
  client.close();
  await agent?.stop();
  await cri.stop();
  await cluster.stop();
});

const start = async () => {
  agent = await startAgent(cluster, { lifecycle: "true", runtimeEndpoint: cri.socket });
  // Well before its first list is done.
  await until("the agent's socket", () => existsSync(socket));
};

/** Stops the agent and starts it again with the same state; `between` runs while it is away. */
async function restart(between: () => Promise<void> | void = () => {}): Promise<void> {
  await agent.stop();
  await between();
  await start();
}

function runPod(name: string) {
  const uid = `uid-${name}`;
  const sandbox = runtime.runSandbox({ uid, name, namespace: "default" });
  return { uid, sandbox, container: runtime.runContainer(sandbox, { name: "app" }) };
}

const cli = (...args: string[]) =>
  runCommand((output) => runCli(["node", "nodekeeper", ...args, "--server", agent.address], output));

const firstItem = async (options = {}): Promise<PodLifecycleItem> => {
  for await (const item of client.watch(options, new AbortController().signal)) return item;
  throw new Error("the watch ended without an item");
};

describe("after a restart of the agent", () => {
  it("pods that did not change are in the status cache: for the command, for a fresh reading, for a watch", async () => {
    await cri.start();
    const kept = runPod("kept");
    const ended = runPod("ended");
    await start();
    await until("both pods", async () => (await client.getPods()).length === 2);
    await restart(() => runtime.exit(ended.container, 3));

    // All at once, and as early as a client can come.
    const [fresh, snapshot, printed] = await Promise.all([
      client.getPods({ selector: { uid: kept.uid }, fresh: true }),
      firstItem({ withStatus: true }),
      cli("pods"),
    ]);
    expect(fresh).toMatchObject([{ name: "kept", containers: [{ name: "app", state: "running" }] }]);
    expect(snapshot).toMatchObject({
      kind: "snapshot",
      pods: expect.arrayContaining([
        expect.objectContaining({
          name: "kept",
          status: expect.objectContaining({ containers: [expect.objectContaining({ state: "running" })] }),
        }),
      ]),
    });
    expect(printed).toMatchObject({ status: 0, out: expect.stringMatching(/default +kept +1\/1 +Running/) });
    expect(printed.out).toMatch(/default +ended +0\/1 +(Error|Exit:3)/);
  });
});

describe("a container killer", () => {
  it("stops the containers of a pod that did not change over a restart of the agent", async () => {
    const directory = join(cluster.directory, "killer");
    const database = StateDatabase.open({ directory, clock: systemClock, log: silentLogger });
    await cri.start();
    const { uid, container } = runPod("a");
    const common = { clock: systemClock, log: silentLogger };
    /** Lifecycle on what an earlier one left, until `use` is done. */
    const run = async (use: (statuses: PodStatusReader, client: CriRuntime) => Promise<void>) => {
      const registry = new Registry();
      using client = new CriRuntime({ ...common, registry, endpoint: cri.socket });
      const store = new LifecycleStore(database);
      const lifecycle = new PodLifecycleEventGenerator({ ...common, registry, runtime: client, store });
      const controller = new AbortController();
      const running = lifecycle.run(controller.signal);
      await lifecycle.listedSoon(controller.signal);
      await use(lifecycle.statuses, client);
      controller.abort(stopped("test is over"));
      await running;
    };
    await run(async () => {});
    await run(async (statuses, client) => {
      const killer = new ContainerKiller({
        runtime: client,
        statuses,
        clock: systemClock,
        policy: () => testPolicy({ releaseMarginMs: 60_000 }),
      });
      const pod = { uid, namespace: "default", name: "a" };
      const request = { pod, gracePeriodSeconds: 0, ownGracePeriodSeconds: 0, sending: () => true };
      const result = await killer.kill(request, new AbortController().signal);
      expect(result).toMatchObject({ kind: "accepted" });
      if (result.kind === "accepted") expect(await result.ended).toMatchObject({ kind: "stopped" });
      expect(runtime.containers.get(container)?.exitCode).toBe(137);
    });
    database.close();
  });
});

describe("an early consumer", () => {
  it("gets the node as the first list finds it, not an empty one", async () => {
    await cri.start();
    runPod("a");
    cri.faults = ({ method }) => (method === "ListContainers" ? { delayMs: 700 } : undefined);
    await start();
    const [snapshot, pods] = await Promise.all([firstItem(), client.getPods()]);
    expect(snapshot).toMatchObject({ kind: "snapshot", pods: [{ name: "a" }] });
    expect(pods).toMatchObject([{ name: "a", containers: [{ state: "running" }] }]);
  });
});

describe("a runtime that can't be reached", () => {
  it("leaves the agent unready until it has listed once, and no command reports that there are no pods", async () => {
    await start();
    expect(await agent.ready()).toMatchObject({
      status: 503,
      text: expect.stringMatching(/\[-\]PodLifecycleReady failed: no relist has succeeded/),
    });
    const early = cli("pods");
    await cri.start();
    expect(await early).toMatchObject({
      status: 0,
      out: "The container runtime has no pods.\n",
      stderr: "",
    });
    expect((await agent.ready()).text).toContain("[+]PodLifecycleReady ok");
    await cri.stop();
    await eventually(async () =>
      expect(await cli("pods")).toMatchObject({
        status: 0,
        out: "The last relist found no pods.\n",
        stderr: expect.stringMatching(
          /the container runtime last listed its pods .* ago; .*\nnodekeeper: container runtime: last error/,
        ),
      }),
    );
  });
});

describe("a runtime that is slow with one pod", () => {
  it("is named with the call and the pod, by the command and by readiness, while it lasts", async () => {
    await cri.start();
    const { uid, container } = runPod("stuck");
    runPod("well");
    await start();
    await until("both pods", async () => (await client.getPods()).length === 2);
    cri.faults = ({ podUid, method }) =>
      podUid === uid && method === "ContainerStatus" ? { hang: true } : undefined;
    runtime.exit(container, 1);
    // The reading of the pod counts as slow some milliseconds before the call that it made.
    await eventually(async () => {
      const { out, stderr } = await cli("pods");
      expect(stderr).toMatch(/container runtime: slow: status of pod default\/stuck for /);
      expect(stderr).toContain(`no response yet to: ContainerStatus of ${container} for`);
      expect(out).toMatch(/default +stuck .* Unreadable/);
      expect(out).toMatch(/default +well +1\/1 +Running/);
    });
    await eventually(async () =>
      expect(await agent.ready()).toMatchObject({
        status: 200,
        text: expect.stringMatching(/\[\+\]PodLifecycleReady ok, but: .*slow: status of pod default\/stuck/),
      }),
    );
    await eventually(async () =>
      expect(await agent.metrics()).toMatch(
        /nodekeeper_runtime_oldest_call_seconds\{method="ContainerStatus"\} [\d.]+/,
      ),
    );
    cri.faults = () => undefined;
  });
});
