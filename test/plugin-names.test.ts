import { lchownSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { isRoot } from "./support/owned-directory.ts";
import { startPluginOf } from "./support/owned-plugin.ts";
import { type BarePlugin, constantly, widgets } from "./support/plugins.ts";

// To whom the name of a plugin belongs: to the user whose socket registered it, not to the newest socket of all users.

const ALICE = 65_532;
const MALLORY = 65_533;
const GRACE_MS = 10 * 60_000;

let cluster: TestCluster;
let agent: RunningAgent;
let clock: SteppedClock;
const plugins: BarePlugin[] = [];

beforeEach(async () => {
  cluster = await startCluster();
  clock = new SteppedClock();
});
afterEach(async () => {
  for (const plugin of plugins.splice(0)) plugin.stop();
  await agent.stop();
  await cluster.stop();
});

async function start(flags: Record<string, string> = {}): Promise<void> {
  agent = await startAgent(
    cluster,
    {
      pluginAllowedUids: `${ALICE},${MALLORY}`,
      reportingPluginGracePeriod: "10m",
      devicesWipeDelay: "10m",
      evictionConditionTransitionPeriod: "10m",
      ...flags,
    },
    undefined,
    clock,
  );
}

const kinds = {
  ReporterPlugin: "v1alpha1",
  EvictionPlugin: "v1alpha1",
  DRAPlugin: "nodekeeper.devices.v1alpha2",
} as const;

interface Presented {
  type?: keyof typeof kinds;
  name?: string;
  directory?: string;
}

async function serve(
  uid: number,
  file: string,
  value: number,
  presented: Presented = {},
): Promise<BarePlugin> {
  const { type = "ReporterPlugin", name = "gpus.example.com", directory = agent.pluginDir } = presented;
  const plugin = await startPluginOf(uid, [directory, file], name, constantly(widgets("gpus", value)), {
    type,
    supportedVersions: [kinds[type]],
  });
  plugins.push(plugin);
  return plugin;
}

const registered = (plugin: BarePlugin) =>
  until("it is registered", () => plugin.notices.at(-1)?.pluginRegistered === true, {
    explain: () => plugin.notices,
  });
const refused = (plugin: BarePlugin, reason: string) =>
  eventually(() => {
    expect(plugin.notices.at(-1)).toMatchObject({
      pluginRegistered: false,
      error: expect.stringContaining(reason),
    });
  });

describe.runIf(isRoot).each(Object.keys(kinds) as (keyof typeof kinds)[])("the name of a %s", (type) => {
  const rule = `NK1321: the ${type} name "gpus.example.com" belongs to user ID ${ALICE}`;

  it("is not taken over by another user's newer plugin, but by a newer one of its own user", async () => {
    await start();
    const first = await serve(ALICE, "a", 100, { type });
    await registered(first);
    const stranger = await serve(MALLORY, "b", 666, { type });
    await refused(stranger, rule);
    if (type === "ReporterPlugin") await untilWidgets(cluster, "gpus", 100);
    const newer = await serve(ALICE, "c", 101, { type });
    await registered(newer);
    if (type === "ReporterPlugin") await untilWidgets(cluster, "gpus", 101);
    expect(stranger.notices.some(({ pluginRegistered }) => pluginRegistered)).toBe(false);

    await eventually(() => {
      const events = cluster.server.store.list("events").map(({ reason, message }) => ({ reason, message }));
      expect(events).toContainEqual({
        reason: "PluginRefused",
        message: expect.stringContaining(rule.slice(8)),
      });
    });
    expect(agent.logLines).toContainEqual(
      expect.objectContaining({ msg: "plugin refused", errorId: "NK1321", uid: MALLORY, type }),
    );
    expect(await agent.metrics()).toContain(`nodekeeper_plugins_refusals_total{error="NK1321"}`);
  });

  it("stays with its user until the grace period of the plugin ends", async () => {
    await start();
    const first = await serve(ALICE, "a", 100, { type });
    await registered(first);
    const stranger = await serve(MALLORY, "b", 666, { type });
    await refused(stranger, rule);
    const before = stranger.notices.length;
    first.stop();
    // The name is free for its own user only; the stranger was tried again.
    await until("it is refused again", () => stranger.notices.length > before);
    await refused(stranger, `${rule}, whose plugin was lost`);
    clock.advance(GRACE_MS);
    await registered(stranger);
  });

  it("stays with its user over a restart of the agent, though the stranger's socket is there first", async () => {
    await start();
    const first = await serve(ALICE, "b", 100, { type });
    await registered(first);
    await agent.stop();
    first.stop();
    const stranger = await serve(MALLORY, "a", 666, { type });
    await start();
    await refused(stranger, rule);
    await registered(await serve(ALICE, "c", 101, { type }));
  });
});

describe.runIf(isRoot)("names", () => {
  it("that differ in the case of letters only belong to one user", async () => {
    await start();
    await registered(await serve(ALICE, "a", 100));
    const stranger = await serve(MALLORY, "b", 666, { name: "GPUs.example.com" });
    await refused(stranger, `NK1321: the ReporterPlugin name "GPUs.example.com" belongs to user ID ${ALICE}`);
  });

  it("that are bound to a user in the configuration are refused to others, also if these are first", async () => {
    await start({ pluginNameOwners: `gpus.example.com=${ALICE}` });
    const stranger = await serve(MALLORY, "a", 666);
    await refused(
      stranger,
      `NK1322: the name "gpus.example.com" is bound to user ID ${ALICE} (plugins.nameOwners)`,
    );
    await registered(await serve(ALICE, "b", 100));
    await untilWidgets(cluster, "gpus", 100);
  });

  it.each([
    ["ReporterPlugin", "System-Reporter-Plugin", { reportingInTreePlugins: "*" }],
    [
      "EvictionPlugin",
      "RSS-overuse-eviction-plugin",
      { evictionInTreePlugins: "rss-overuse-eviction-plugin" },
    ],
  ] as const)("of in-tree plugins are reserved in every case: %s %s", async (type, name, flags) => {
    await start(flags);
    await refused(await serve(ALICE, "a", 100, { type, name }), "NK1304: ");
  });

  it("are taken by a user's own socket, not by a link to the socket of another user", async () => {
    await start();
    const first = await serve(ALICE, "a", 100);
    await registered(first);
    symlinkSync(first.socketPath, `${agent.pluginDir}/.link`);
    lchownSync(`${agent.pluginDir}/.link`, MALLORY, 0);
    renameSync(`${agent.pluginDir}/.link`, `${agent.pluginDir}/z.sock`);
    const isRefused = async () =>
      (await agent.api("plugins")).some(
        ({ registrationSocket, state }: Record<string, string>) =>
          registrationSocket?.endsWith("/z.sock") && state === "refused",
      );
    await until("the link is refused", isRefused, { explain: () => agent.api("plugins") });
    rmSync(`${agent.pluginDir}/z.sock`);
    await untilWidgets(cluster, "gpus", 100);
  });
});
