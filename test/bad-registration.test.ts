import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { PluginInfo } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { startAgent } from "./support/agent.ts";
import { startCluster } from "./support/cluster.ts";
import { startNeighbour, useNeighbour } from "./support/neighbour.ts";
import { constantly, startBarePlugin, widgets } from "./support/plugins.ts";
import { setUp } from "./support/setup.ts";

const node = useNeighbour();

const refused: [string, Partial<PluginInfo>, RegExp][] = [
  ["a name with slashes", { name: "../../etc/passwd" }, /"\.\.\/\.\.\/etc\/passwd".*letters, digits/],
  [
    "a name of 10,000 characters",
    { name: "n".repeat(10_000) },
    /\(10000 characters\) is refused: a name has 1 to 253 characters/,
  ],
  ["no name", { name: "" }, /name/],
  [
    "an unknown type",
    { type: "TeapotPlugin" },
    /unknown plugin type "TeapotPlugin"; accepted types: DRAPlugin, EvictionPlugin, ReporterPlugin/,
  ],
  [
    "unknown versions",
    { supportedVersions: ["v9"] },
    /supported versions of ReporterPlugin: v1alpha1.*offers v9/,
  ],
  ["an endpoint that is no path", { endpoint: "tcp://10.0.0.1:80" }, /invalid endpoint/],
  [
    "a name that is taken by an in-tree plugin",
    { name: "system-reporter-plugin" },
    /reserved for an in-tree plugin/,
  ],
];

it.each(refused)("%s is refused, told to the plugin and shown", async (what, info, reason) => {
  const isReserved = info.name === "system-reporter-plugin";
  const own = isReserved ? await startCluster() : undefined;
  const host = own ? await startAgent(own, { reportingInTreePlugins: "system-reporter-plugin" }) : node.agent;
  const socketName = `bad-${refused.findIndex(([each]) => each === what)}`;
  const plugin = await startBarePlugin(host.pluginDir, socketName, constantly(widgets("bad", 1)), info);
  try {
    const notice = await until("it is told", () => plugin.notices[0]);
    expect(notice).toMatchObject({ pluginRegistered: false });
    expect(notice.error).toMatch(reason);
    expect(notice.error.length).toBeLessThan(1_000);
    const row = (await host.plugins()).find((each) => each.registrationSocket === plugin.socketPath);
    expect(row).toMatchObject({ state: "refused" });
    expect(row?.error).toMatch(reason);
    expect(row?.name.length).toBeLessThanOrEqual(253);
    await node.neighbour.update();
    expect(node.cluster.widgets("bad")).toBeUndefined();
  } finally {
    plugin.stop();
    if (own) {
      await host.stop();
      await own.stop();
    }
  }
});

it("sockets that accept and send nothing are named, and a later plugin is registered meanwhile", async () => {
  await using own = await setUp({ pluginInfoTimeout: "500ms" });
  const { cluster: server, agent: host } = own;
  const rowAt = async (socket: string) =>
    (await host.plugins()).find(({ registrationSocket }) => registrationSocket === socket);
  const silent = await Promise.all([1, 2, 3].map((n) => listenSilently(join(host.pluginDir, `silent-${n}`))));
  for (const { path } of silent) await until("it is tried", () => rowAt(path));
  const later = await startNeighbour(server, host.pluginDir, "later");
  await later.update();
  for (const { path, close } of silent) {
    await until("it is named", async () => {
      const row = await rowAt(path);
      return row?.state === "failed" && row.error?.includes("no response within 500 ms");
    });
    close();
  }
  await later.update();
  await later.stop();
});

it("5,000 files that are no sockets hide no plugin", async () => {
  for (let n = 0; n < 5_000; n++) writeFileSync(join(node.agent.pluginDir, `file-${n}`), "");
  const later = await startNeighbour(node.cluster, node.agent.pluginDir, "among-files");
  await later.update();
  await node.neighbour.update();
  expect((await node.agent.plugins()).length).toBeLessThan(50);
  await later.stop();
});

async function listenSilently(path: string): Promise<{ path: string; close: () => void }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.listen(path);
  await once(server, "listening");
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { path, close };
}
