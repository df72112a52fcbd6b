import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fault } from "../src/devcluster/index.ts";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "./support/plugins.ts";
import { until } from "./support/until.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let plugin: GoodPlugin;

beforeEach(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster);
  plugin = await startGoodPlugin(agent.pluginDir, "steady", widgets("steady", 1));
  await untilWidgets(cluster, "steady", 1);
});
afterEach(async () => {
  await plugin.stop();
  await agent.stop();
  await cluster.stop();
});

const applies = () =>
  cluster.requests.filter(
    ({ method, resource }) => method === "PATCH" && resource?.plural === "customnoderesources",
  );

async function messages(): Promise<number> {
  return Number(
    /^nodekeeper_reporting_messages_total\{plugin="steady"\} (\d+)$/m.exec(await agent.metrics())?.[1],
  );
}

async function cnrStatus(): Promise<{ pending: boolean; lastError?: string }> {
  const objects = await agent.api("objects");
  return objects.find(({ object }: { object: string }) => object.endsWith("CustomNodeResource"));
}

const faults: [string, Fault, RegExp][] = [
  ["500", { status: 500, body: { kind: "Status", message: "etcd is unwell" } }, /500: etcd is unwell/],
  [
    "a page of HTML",
    { status: 200, headers: { "content-type": "text/html" }, body: "<html>captive portal</html>" },
    /200 with a body that is not JSON.*captive portal/,
  ],
  ["a page of HTML with 403", { status: 403, body: "<html>go away</html>" }, /403: .*go away/],
  ["nothing: the connection is cut", "cut", /hang up|reset|closed/],
];

describe("while the API server answers applies with", () => {
  it.each(faults)(
    "%s, the newest content waits, retries are few, and it arrives",
    async (_, fault, error) => {
      cluster.fault = ({ method }) => (method === "PATCH" ? fault : undefined);
      const before = applies().length;
      const began = performance.now();
      plugin.say(widgets("steady", 2));
      await until("the trouble is named", async () => error.test((await cnrStatus()).lastError ?? ""), {
        explain: cnrStatus,
      });
      expect((await cnrStatus()).pending).toBe(true);
      plugin.say(widgets("steady", 3));
      await until("three tries", () => applies().length >= before + 3);
      // Backoff from 250 ms on; new content may come once in between.
      const seconds = (performance.now() - began) / 1000;
      expect(applies().length - before).toBeLessThanOrEqual(3 + 4 * seconds);
      plugin.say(widgets("steady", 4));
      cluster.fault = () => undefined;
      await untilWidgets(cluster, "steady", 4);
      await until("nothing is left to say", async () => {
        const { pending, lastError } = await cnrStatus();
        return !pending && !lastError;
      });
    },
  );
});

it("429 with Retry-After is obeyed, also while content changes", async () => {
  let refused = 0;
  cluster.fault = ({ method }) => {
    if (method !== "PATCH" || refused > 0) return undefined;
    refused++;
    return { status: 429, headers: { "retry-after": "2" }, body: { kind: "Status", message: "slow down" } };
  };
  const before = applies().length;
  plugin.say(widgets("steady", 2));
  await until("it is refused", () => refused === 1);
  for (let value = 3; value <= 8; value++) {
    const before = await messages();
    plugin.say(widgets("steady", value));
    await until("it is received", async () => (await messages()) > before);
  }
  await untilWidgets(cluster, "steady", 8);
  const [first, second] = applies().slice(before);
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(1_950);
  expect(applies().length - before).toBeLessThanOrEqual(3);
});

it("a server that is away for a while gets the newest content when it is back", async () => {
  await cluster.server.stop();
  for (const value of [2, 3, 4]) plugin.say(widgets("steady", value));
  await until("the trouble is named", async () => (await cnrStatus()).lastError?.includes("ECONNREFUSED"));
  expect((await agent.plugin("steady"))?.error).toBeUndefined();
  plugin.say(widgets("steady", 5));
  await cluster.server.start();
  await untilWidgets(cluster, "steady", 5);
  plugin.say(widgets("steady", 6));
  await untilWidgets(cluster, "steady", 6);
});

it("a server that hangs is given up at the deadline", async () => {
  cluster.fault = ({ method }) => (method === "PATCH" ? "hang" : undefined);
  plugin.say(widgets("steady", 2));
  await until("the deadline is named", async () =>
    (await cnrStatus()).lastError?.includes("no answer within 2000 ms"),
  );
  cluster.fault = () => undefined;
  await untilWidgets(cluster, "steady", 2);
});

it("a server that goes away with a write under way gets it again", async () => {
  cluster.admit = ({ method }) => (method === "PATCH" ? { delayMs: 200 } : undefined);
  plugin.say(widgets("steady", 2));
  await until("it is on its way", () => applies().at(-1)?.body !== undefined);
  await cluster.server.stop();
  cluster.admit = () => undefined;
  await cluster.server.start();
  await untilWidgets(cluster, "steady", 2);
});

it("an agent that starts while another program has the API server's port says so and goes on", async () => {
  await agent.stop();
  await cluster.server.stop();
  const impostor = createServer((_, response) => response.end("not the API server"));
  const { port } = new URL(cluster.server.url);
  await new Promise<void>((resolve) => impostor.listen(Number(port), "127.0.0.1", resolve));
  expect((impostor.address() as AddressInfo).port).toBe(Number(port));
  agent = await startAgent(cluster);
  plugin.say(widgets("steady", 2));
  await until("the trouble is named", async () => (await cnrStatus())?.lastError?.includes("not JSON"));
  impostor.closeAllConnections();
  await new Promise((resolve) => impostor.close(resolve));
  await cluster.server.start();
  await untilWidgets(cluster, "steady", 2);
});
