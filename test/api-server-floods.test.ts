import { writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { kubeconfigFor } from "../packages/testing/src/apiserver/kubeconfig.ts";
import { startProxy } from "./attack/proxy.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { startNeighbour } from "./support/neighbour.ts";

const MIB = 2 ** 20;

let cluster: TestCluster;
let agent: RunningAgent;
/** Whether watches of pods are flooded; what was sent, and how many the agent ended. */
let isFlooding: boolean;
let bytesSent: number;
let ended: number;
let stopProxy: () => Promise<void>;

beforeEach(async () => {
  isFlooding = true;
  bytesSent = 0;
  ended = 0;
  cluster = await startCluster();
  const proxy = await startProxy(cluster.server.url, {
    fromStart: true,
    answer({ url }, response) {
      if (!isFlooding || !/\/pods\?.*watch=true/.test(url!)) return false;
      flood(response);
      return true;
    },
  });
  stopProxy = () => proxy.close();
  await writeFile(cluster.kubeconfig, kubeconfigFor(proxy.url, undefined));
  agent = await startAgent(cluster);
});
afterEach(async () => {
  await agent.stop();
  await stopProxy();
  await cluster.stop();
});

/** Adds pods without end, one of 1 KB after the other. */
function flood(response: ServerResponse): void {
  let added = 0;
  const events = () =>
    Array.from({ length: 500 }, () => {
      const metadata = { name: `p${++added}`, namespace: "default", resourceVersion: String(1e6 + added) };
      return `${JSON.stringify({ type: "ADDED", object: { metadata, spec: { pad: "x".repeat(1_000) } } })}\n`;
    }).join("");
  response.writeHead(200, { "content-type": "application/json" });
  response.once("close", () => ended++);
  const send = () => {
    for (let isTaken = true; isTaken && !response.destroyed; ) {
      const bytes = events();
      isTaken = response.write(bytes);
      if (isTaken) bytesSent += bytes.length;
    }
  };
  response.on("drain", send);
  send();
}

it("a watch that sends events without end is ended, with a reason, and the agent continues", async () => {
  await until("the watch is ended", () => ended > 0, { explain: () => bytesSent });
  // 16 MiB, what came back to its budget meanwhile, and what the kernel had taken.
  expect(bytesSent / MIB).toBeLessThan(64);
  await until("it is logged", () =>
    agent.logLines.some(({ err }) => /the objects are listed again/.test(err)),
  );
  isFlooding = false;
  const neighbour = await startNeighbour(cluster, agent.pluginDir);
  await neighbour.update();
  await until("pods are watched again", async () => (await agent.ready()).status === 200, {
    explain: async () => (await agent.ready()).text,
  });
  await neighbour.stop();
});
