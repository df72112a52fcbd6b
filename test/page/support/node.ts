import { join } from "node:path";
import { type Clock, systemClock } from "@nodekeeper/core/lib";
import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { freePort } from "../../e2e/support/free-port.ts";
import { type RunningAgent, startAgent } from "../../support/agent.ts";
import { startCluster, type TestCluster } from "../../support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "../../support/eviction-plugin.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "../../support/plugins.ts";

export interface NodeOptions {
  clock?: Clock;
  /** By `Setting.optionKey`, over those of `agentFlags`. */
  flags?: Record<string, string>;
}

/** A pod that the API server and the runtime have. */
export interface NodePod {
  uid: string;
  sandbox: string;
  container: string;
}

/** An agent in this process with a part of every kind beside it, all of which a test can change. */
export interface PageNode extends AsyncDisposable {
  cluster: TestCluster;
  runtime: SimulatedRuntime;
  cri: SimulatedCri;
  /** No threshold is met until the test has it so. */
  pressure: TestEvictionPlugin;
  /** The agent that runs, or ran last. Its address stays the same. */
  agent: RunningAgent;
  /** @param metadata more of it: labels, owners */
  addPod(name: string, namespace?: string, metadata?: object): NodePod;
  /** Has `pressure` select a pod, until the API server received the eviction. */
  evict(name: string): Promise<void>;
  startAgent(flags?: Record<string, string>): Promise<void>;
}

export const DRIVER = "gpu.example.com";

/** Starts everything but pods; resolves when the agent serves. */
export async function startNode({ clock = systemClock, flags = {} }: NodeOptions = {}): Promise<PageNode> {
  await using started = new AsyncDisposableStack();
  const cluster = await startCluster();
  started.defer(() => cluster.stop());
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const cri = new SimulatedCri({ runtime, socket: join(cluster.directory, "cri.sock"), clock: systemClock });
  started.defer(() => cri.stop());
  await cri.start();
  const serverAddress = `127.0.0.1:${await freePort()}`;
  const start = (more: Record<string, string> = {}) =>
    startAgent(
      cluster,
      {
        serverAddress,
        lifecycle: "true",
        lifecycleRelistPeriod: "1s",
        runtimeEndpoint: `unix://${cri.socket}`,
        devicesMinWriteInterval: "0s",
        ...flags,
        ...more,
      },
      undefined,
      clock,
    );
  const agent = await start();
  started.defer(() => node.agent.stop());
  const pressure = await startEvictionPlugin(agent.pluginDir, "memory-watch");
  started.defer(() => pressure.stop());
  pressure.threshold = { ...hardPressure, metType: 0, observedValue: 0.4 };
  const reporter: GoodPlugin = await startGoodPlugin(agent.pluginDir, "widgets", widgets("shared", 3));
  started.defer(() => reporter.stop());
  const driver: Plugin = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "gpu-0", attributes: { model: { string: "x1" } } }, { name: "gpu-1" }] }];
    },
  });
  started.defer(() => driver.stop());
  const parts = started.move();
  const node: PageNode = {
    cluster,
    runtime,
    cri,
    pressure,
    agent,
    addPod(name, namespace = "default", metadata = {}) {
      const uid = cluster.addPod(name, { metadata: { namespace, ...metadata } });
      const sandbox = runtime.runSandbox({ uid, name, namespace });
      return { uid, sandbox, container: runtime.runContainer(sandbox, { name: "app" }) };
    },
    async evict(name) {
      pressure.top = pick([name]);
      pressure.threshold = hardPressure;
      await until(`${name} is evicted`, () => cluster.evictions().includes(name), {
        explain: () => node.agent.logLines.slice(-5),
      });
      pressure.threshold = { ...hardPressure, metType: 0, observedValue: 0.4 };
    },
    async startAgent(more) {
      node.agent = await start(more);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
  return node;
}
