import { customNodeResource, node, type ReportContent, status } from "@nodekeeper/sdk";
import type { ReceivedRequest } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type Neighbour, startNeighbour } from "./support/neighbour.ts";
import { startGoodPlugin, widgets } from "./support/plugins.ts";

// etcd refuses an object beyond 1.5 MiB, and the API server says of it no more than this.
let etcdLimit = 1.5 * 2 ** 20;
const refuseLarge = ({ body }: ReceivedRequest) =>
  Buffer.byteLength(JSON.stringify(body ?? {})) > etcdLimit
    ? { status: 500, body: { kind: "Status", message: "etcdserver: request is too large" } }
    : undefined;

let cluster: TestCluster;
let agent: RunningAgent;
let before: Neighbour;
let after: Neighbour;

beforeAll(async () => {
  cluster = await startCluster();
  cluster.admit = refuseLarge;
  agent = await startAgent(cluster, { reportingPluginGracePeriod: "0s" });
  before = await startNeighbour(cluster, agent.pluginDir, "a-before");
  after = await startNeighbour(cluster, agent.pluginDir, "z-after");
});
afterAll(async () => {
  await before.stop();
  await after.stop();
  await agent.stop();
  await cluster.stop();
});

const megabytes = (count: number) => "x".repeat(count * 1e6);
const list = (bytes: number) =>
  Array.from({ length: bytes / 100 }, (_, at) => ({ type: "Numa", name: `${at}`.padEnd(75) }));
const map = (bytes: number) =>
  Object.fromEntries(
    Array.from({ length: bytes / 40 }, (_, at) => [`example.com/a-rather-long-name-${at}`, "1"]),
  );

const cases: [string, ReportContent, string][] = [
  [
    "2 MB of texts",
    customNodeResource(status("bulk", megabytes(1)), status("more", megabytes(1))),
    "CustomNodeResource",
  ],
  [
    "2 MB of zones and a text",
    customNodeResource(status("topologyZone", list(1e6)), status("bulk", megabytes(1))),
    "CustomNodeResource",
  ],
  [
    "0.8 MB of resources, which managedFields name again",
    customNodeResource(status("resources", { allocatable: map(0.8e6) })),
    "CustomNodeResource",
  ],
  ["0.8 MB of a Node's resources", node(status("capacity", map(0.8e6))), "v1/Node"],
];

async function rowOf(name: string): Promise<string> {
  return (await agent.plugin(name))?.problems.join("; ") ?? "";
}

describe("a plugin that reports more than the object has room for", () => {
  it.each(cases)(
    "%s: it is named, its last good content stays, others continue",
    async (_, large, object) => {
      const plugin = await startGoodPlugin(
        agent.pluginDir,
        "large",
        widgets("large", 1),
        node(status("capacity", { "example.com/small": "1" })),
      );
      await untilWidgets(cluster, "large", 1);
      await until("its Node resource", () => cluster.node().status.capacity["example.com/small"] === "1");
      plugin.say(widgets("large", 2), large);
      await until(
        "its row names the object and the size",
        async () =>
          new RegExp(
            `${object} is not published: its \\d+ KiB would make the object larger than the limit of 1024 KiB`,
          ).test(await rowOf("large")),
        { explain: () => rowOf("large") },
      );
      await before.update();
      await after.update();
      if (object === "CustomNodeResource") expect(cluster.widgets("large")).toBe("1");
      else expect(cluster.node().status.capacity["example.com/small"]).toBe("1");
      expect((await agent.ready()).text).toContain("[+]ReporterPublished ok");
      expect(agent.logLines).toContainEqual(
        expect.objectContaining({
          plugin: "large",
          msg: expect.stringContaining("too large for the object"),
        }),
      );
      plugin.say(widgets("large", 3));
      await untilWidgets(cluster, "large", 3);
      await until("nothing is held back any more", async () => (await rowOf("large")) === "");
      await plugin.stop();
      await until("its content is withdrawn", () => cluster.widgets("large") === undefined);
    },
  );

  it("in one field: the field is named, and not even read", async () => {
    const plugin = await startGoodPlugin(agent.pluginDir, "large", widgets("large", 1));
    await untilWidgets(cluster, "large", 1);
    plugin.say(widgets("large", 2), customNodeResource(status("bulk", megabytes(1.5))));
    await untilWidgets(cluster, "large", 2);
    expect(await rowOf("large")).toMatch(
      /"bulk".*: 1500002 bytes, more than the limit for an object \(1024 KiB\)/,
    );
    expect(cluster.cnr().status.bulk).toBeUndefined();
    await plugin.stop();
  });

  it.each(["b-grows", "y-grows"])(
    "by growing: %s pays with its growth, not the neighbour whose large report did not change",
    async (name) => {
      const bulk = (field: string, bytes: number) => customNodeResource(status(field, "x".repeat(bytes)));
      const size = (field: string) => cluster.cnr().status[field]?.length;
      const large = await startGoodPlugin(
        agent.pluginDir,
        "m-large",
        widgets("m-large", 1),
        bulk("large", 600_000),
      );
      await until("the large report", () => size("large") === 600_000);
      const growing = await startGoodPlugin(
        agent.pluginDir,
        name,
        widgets(name, 1),
        bulk("growing", 100_000),
      );
      await until("the other report", () => size("growing") === 100_000);
      growing.say(widgets(name, 2), bulk("growing", 550_000));
      await until("the row of the plugin that grew says so", async () =>
        /its 538 KiB would .*; its last known good content of 98 KiB stays published/.test(await rowOf(name)),
      );
      await before.update();
      await after.update();
      expect(await rowOf("m-large")).toBe("");
      expect([size("large"), size("growing"), cluster.widgets(name)]).toEqual([600_000, 100_000, "1"]);
      large.say(widgets("m-large", 2));
      await until("there is room for it", () => size("growing") === 550_000);
      await until("nothing is held back any more", async () => (await rowOf(name)) === "");
      await Promise.all([large.stop(), growing.stop()]);
      await until("both are withdrawn", () => size("large") === undefined && size("growing") === undefined);
    },
  );

  it("than a server with a lower limit takes: the same, after its first refusal", async () => {
    const plugin = await startGoodPlugin(agent.pluginDir, "large", widgets("large", 1));
    await untilWidgets(cluster, "large", 1);
    etcdLimit = 200_000;
    plugin.say(widgets("large", 2), customNodeResource(status("bulk", megabytes(0.5))));
    await until("its row names it", async () => (await rowOf("large")).includes("is not published: its"));
    await before.update();
    await after.update();
    expect(cluster.widgets("large")).toBe("1");
    etcdLimit = 1.5 * 2 ** 20;
    await plugin.stop();
  });
});
