import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { give, isRoot } from "./support/owned-directory.ts";
import { startPluginOf } from "./support/owned-plugin.ts";
import { type BarePlugin, constantly, widgets } from "./support/plugins.ts";

// Plugins of one user or directory in any number keep those of others neither out nor their reports unpublished.

const ALICE = 65_532;
const MALLORY = 65_533;
const MOST = 8;

let cluster: TestCluster;
let agent: RunningAgent;
let flood: string;
const plugins: BarePlugin[] = [];

beforeEach(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster, {
    pluginAllowedUids: `${ALICE},${MALLORY}`,
    maxPlugins: String(MOST),
    reportingPluginGracePeriod: "1h",
  });
  flood = join(agent.pluginDir, "flood");
  mkdirSync(flood);
});
afterEach(async () => {
  for (const plugin of plugins.splice(0)) plugin.stop();
  await agent.stop();
  await cluster.stop();
});

async function serve(uid: number, name: string, directory = agent.pluginDir): Promise<BarePlugin> {
  const plugin = await startPluginOf(uid, [directory, name], name, constantly(widgets(name, 1)));
  plugins.push(plugin);
  return plugin;
}
const isRegistered = (plugin: BarePlugin) => plugin.notices.at(-1)?.pluginRegistered === true;
const registered = (plugin: BarePlugin) =>
  until("it is registered", () => isRegistered(plugin), { explain: () => plugin.notices });
const states = async (state: string) => (await agent.plugins()).filter((row) => row.state === state);

/** Registers names in turn, each of which is lost before the next. */
async function registerInTurn(uid: number, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const plugin = await serve(uid, `flood-${at}`, flood);
    await registered(plugin);
    plugin.stop();
    await until("it is lost", async () => (await agent.plugin(`flood-${at}`))?.state !== "registered");
  }
}

describe.runIf(isRoot).each([
  ["of a user", MALLORY],
  ["of a directory of root's", 0],
])("a flood %s", (_, uid) => {
  beforeEach(() => give(uid, flood));

  it("of names in turn keeps no other out, and ends no other's grace period", async () => {
    const lost = await serve(ALICE, "alices-lost");
    await registered(lost);
    await untilWidgets(cluster, "alices-lost", 1);
    lost.stop();
    await until("it is lost", async () => (await agent.plugin("alices-lost"))?.state === "lost");

    await registerInTurn(uid, 2 * MOST);
    for (const [user, name] of [
      [ALICE, "alices"],
      [0, "roots"],
    ] as const) {
      const plugin = await serve(user, name);
      await registered(plugin);
      await untilWidgets(cluster, name, 1);
    }
    expect(cluster.widgets("alices-lost")).toBe("1");
    expect((await agent.plugin("alices-lost"))?.state).toBe("lost");
    // Bounded, and visible.
    expect((await states("lost")).length).toBe(MOST / 2 + 1);
    expect(await agent.metrics()).toContain(
      `nodekeeper_plugins_displaced_total{type="ReporterPlugin"} ${2 * MOST - MOST / 2}`,
    );
    expect(agent.logLines).toContainEqual(
      expect.objectContaining({ errorId: "NK1324", uid, plugin: "flood-0", type: "ReporterPlugin" }),
    );
    await eventually(() => {
      const events = cluster.server.store.list("events").filter(({ reason }) => reason === "PluginDisplaced");
      expect(events.length).toBe(3);
    });
  });

  it("of plugins that stay takes half of the places, not all", async () => {
    const many: BarePlugin[] = [];
    for (let at = 0; at < 2 * MOST; at++) many.push(await serve(uid, `flood-${at}`, flood));
    await until("each was answered", () => many.every(({ notices }) => notices.length > 0));
    expect(many.filter(isRegistered)).toHaveLength(MOST / 2);
    const refused = many.find((plugin) => !isRegistered(plugin))!;
    const whose = uid === 0 ? `directory ${flood}` : `user ID ${uid}`;
    expect(refused.notices[0]!.error).toBe(
      `NK1323: ${whose} has 4 registered plugins; its share is half of plugins.maxPlugins (8)`,
    );
    await registered(await serve(ALICE, "alices"));
    await registered(await serve(0, "roots"));
    // A place that becomes free is given to one that waits.
    many.find(isRegistered)!.stop();
    await until("another one is registered", () => many.filter(isRegistered).length === MOST / 2 + 1);
  });
});
