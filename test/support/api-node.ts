import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll } from "vitest";
import { type RunningAgent, startAgent } from "./agent.ts";
import { startCluster, type TestCluster } from "./cluster.ts";
import { hardPressure, pick, startEvictionPlugin, type TestEvictionPlugin } from "./eviction-plugin.ts";
import { ApiContract } from "./open-api.ts";
import { type GoodPlugin, rawField, startGoodPlugin, widgets } from "./plugins.ts";

export const DRIVER = "gpu.example.com";

interface Answered {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into documents of every shape
  body: any;
}

/** One agent with a part of every kind, whose answers are all checked against the document that it serves. */
export interface ApiNode {
  cluster: TestCluster;
  agent: RunningAgent;
  runtime: SimulatedRuntime;
  reporters: GoodPlugin[];
  contract: ApiContract;
  containers: Map<string, string>;
  start(): Promise<void>;
  url(path: string): string;
  /** Returns the answer to a GET, checked against the OpenAPI document. */
  ask(path: string, headers?: Record<string, string>): Promise<Answered>;
}

/** Starts a node before the first test of a file, and stops it after the last one. */
export function useApiNode(): ApiNode {
  let cri: SimulatedCri;
  let plugin: TestEvictionPlugin;
  let driver: Plugin;
  const node = {
    containers: new Map<string, string>(),
    async start() {
      node.agent = await startAgent(node.cluster, {
        lifecycle: "true",
        lifecycleRelistPeriod: "100ms",
        runtimeEndpoint: `unix://${join(node.cluster.directory, "cri.sock")}`,
        devicesMinWriteInterval: "0s",
      });
    },
    url: (path) => `http://${node.agent.address}/api/v1/${path}`,
    async ask(path, headers = {}) {
      const response = await fetch(node.url(path), { headers });
      const body = await response.json();
      node.contract.check(path, body, response.ok ? "200" : "default");
      return { status: response.status, headers: response.headers, body };
    },
  } as ApiNode;
  beforeAll(async () => {
    node.cluster = await startCluster();
    node.runtime = new SimulatedRuntime({ clock: systemClock });
    cri = new SimulatedCri({
      runtime: node.runtime,
      socket: join(node.cluster.directory, "cri.sock"),
      clock: systemClock,
    });
    await cri.start();
    node.cluster.addPod("victim");
    node.cluster.addPod("witness");
    await node.start();
    node.reporters = [
      await startGoodPlugin(node.agent.pluginDir, "alpha", widgets("shared", 1), widgets("alpha", 3)),
      await startGoodPlugin(node.agent.pluginDir, "beta", widgets("shared", 2), rawField("nonsense", "{")),
    ];
    driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      async *devices() {
        yield [{ devices: [{ name: "gpu-0", attributes: { model: { string: "x1" } } }, { name: "gpu-1" }] }];
      },
    });
    plugin = await startEvictionPlugin(node.agent.pluginDir, "pressure");
    plugin.top = pick(["victim"]);
    plugin.threshold = {
      ...hardPressure,
      condition: { conditionType: 0, effects: ["NoSchedule"], conditionName: "Hot", metCondition: true },
    };
    for (const name of ["one", "two", "three"]) {
      const sandbox = node.runtime.runSandbox({ uid: `uid-${name}`, name, namespace: "default" });
      node.containers.set(name, node.runtime.runContainer(sandbox, { name: "app" }));
    }
    await until("the pod is evicted", () => node.cluster.evictions().includes("victim"), {
      explain: () => node.agent.logLines.slice(-5),
    });
    node.contract = new ApiContract(await node.agent.api("openapi.json"));
  });
  afterAll(async () => {
    await plugin?.stop();
    await driver?.stop();
    for (const reporter of node.reporters ?? []) await reporter.stop();
    await node.agent?.stop();
    await cri?.stop();
    await node.cluster?.stop();
  });
  return node;
}
