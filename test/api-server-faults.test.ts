import { createServer } from "node:http";
import type { Fault } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { type RunningAgent, untilWidgets } from "./support/agent.ts";
import type { TestCluster } from "./support/cluster.ts";
import { widgets } from "./support/plugins.ts";
import { setUp } from "./support/setup.ts";

function applies({ requests }: TestCluster) {
  return requests.filter(
    ({ method, resource }) => method === "PATCH" && resource?.plural === "customnoderesources",
  );
}

async function messages(agent: RunningAgent): Promise<number> {
  const line = /^nodekeeper_reporting_messages_total\{plugin="steady"\} (\d+)$/m;
  return Number(line.exec(await agent.metrics())?.[1]);
}

async function cnrStatus(agent: RunningAgent): Promise<{ pending: boolean; lastError?: string }> {
  const objects = await agent.api("objects");
  return objects.find(({ object }: { object: string }) => object.endsWith("CustomNodeResource"));
}

async function untilTrouble(agent: RunningAgent, error: RegExp): Promise<void> {
  const look = async () => error.test((await cnrStatus(agent))?.lastError ?? "");
  await until(`the trouble is named with ${error}`, look, { explain: () => cnrStatus(agent) });
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

describe.concurrent("while the API server answers applies with", () => {
  it.each(faults)("%s, the newest content waits, tries are few, and it arrives", async (_, fault, error) => {
    await using setup = await setUp();
    const { cluster, plugin, agent } = setup;
    cluster.fault = ({ method }) => (method === "PATCH" ? fault : undefined);
    const before = applies(cluster).length;
    const began = performance.now();
    plugin.say(widgets("steady", 2));
    await untilTrouble(agent, error);
    expect((await cnrStatus(agent)).pending).toBe(true);
    plugin.say(widgets("steady", 3));
    await until("three tries", () => applies(cluster).length >= before + 3);
    // Backoff from 250 ms on, whatever is said meanwhile.
    const seconds = (performance.now() - began) / 1000;
    expect(applies(cluster).length - before).toBeLessThanOrEqual(3 + 2 * seconds);
    plugin.say(widgets("steady", 4));
    cluster.fault = () => undefined;
    await untilWidgets(cluster, "steady", 4);
    await until("nothing is left to say", async () => {
      const { pending, lastError } = await cnrStatus(agent);
      return !pending && !lastError;
    });
  });
});

describe.concurrent("an API server", () => {
  it("that answers 429 with Retry-After is obeyed, also while content changes", async () => {
    await using setup = await setUp();
    const { cluster, plugin, agent } = setup;
    let refused = 0;
    cluster.fault = ({ method }) => {
      if (method !== "PATCH" || refused > 0) return undefined;
      refused++;
      return { status: 429, headers: { "retry-after": "2" }, body: { kind: "Status", message: "slow down" } };
    };
    const before = applies(cluster).length;
    plugin.say(widgets("steady", 2));
    await until("it is refused", () => refused === 1);
    for (let value = 3; value <= 8; value++) {
      const received = await messages(agent);
      plugin.say(widgets("steady", value));
      await until("it is received", async () => (await messages(agent)) > received);
    }
    await untilWidgets(cluster, "steady", 8);
    const [first, ...later] = applies(cluster).slice(before);
    expect(later.length).toBeGreaterThan(0);
    for (const { at } of later) expect(at - first!.at).toBeGreaterThanOrEqual(1_950);
  });

  it("that is unavailable for a while gets the newest content when it is back", async () => {
    await using setup = await setUp();
    const { cluster, plugin, agent } = setup;
    await cluster.server.stop();
    for (const value of [2, 3, 4]) plugin.say(widgets("steady", value));
    await untilTrouble(agent, /ECONNREFUSED/);
    expect((await agent.plugin("steady"))?.error).toBeUndefined();
    plugin.say(widgets("steady", 5));
    await cluster.server.start();
    await untilWidgets(cluster, "steady", 5);
    plugin.say(widgets("steady", 6));
    await untilWidgets(cluster, "steady", 6);
  });

  it("that hangs is given up at the deadline", async () => {
    await using setup = await setUp({ kubeApiRequestTimeout: "2s" });
    const { cluster, plugin, agent } = setup;
    cluster.fault = ({ method }) => (method === "PATCH" ? "hang" : undefined);
    plugin.say(widgets("steady", 2));
    await untilTrouble(agent, /no response within 2000 ms/);
    cluster.fault = () => undefined;
    await untilWidgets(cluster, "steady", 2);
  });

  it("that fails with a write in progress gets it again", async () => {
    await using setup = await setUp();
    const { cluster, plugin } = setup;
    cluster.admit = ({ method }) => (method === "PATCH" ? { delayMs: 200 } : undefined);
    const before = applies(cluster).length;
    plugin.say(widgets("steady", 2));
    await until("it is on its way", () => applies(cluster)[before]?.body !== undefined);
    await cluster.server.stop();
    expect(cluster.widgets("steady")).toBe("1");
    cluster.admit = () => undefined;
    await cluster.server.start();
    await untilWidgets(cluster, "steady", 2);
  });

  it("whose port another program has when the agent starts is waited for", async () => {
    await using setup = await setUp();
    const { cluster, plugin } = setup;
    const impostor = createServer((_, response) => response.end("not the API server"));
    await setup.restart(async () => {
      await cluster.server.stop();
      const port = Number(new URL(cluster.server.url).port);
      await new Promise<void>((resolve) => impostor.listen(port, "127.0.0.1", resolve));
    });
    plugin.say(widgets("steady", 2));
    await untilTrouble(setup.agent, /not JSON/);
    impostor.closeAllConnections();
    await new Promise((resolve) => impostor.close(resolve));
    await cluster.server.start();
    await untilWidgets(cluster, "steady", 2);
  });
});
