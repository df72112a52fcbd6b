import { mkdirSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../e2e/support/free-port.ts";
import { agentFlags, type StatusReader, statusReader, untilWidgets } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "../support/eviction-plugin.ts";
import { startGoodPlugin, widgets } from "../support/plugins.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { SmallDisk } from "../support/small-disk.ts";

// The agent as a process that is killed, with its state directory on a file system that is full or read-only.
let cluster: TestCluster;
let disk: SmallDisk | undefined;
let plugin: TestEvictionPlugin;
let agent: ScriptProcess | undefined;
let reader: StatusReader;
let flags: Record<string, string>;

beforeEach(async (context) => {
  cluster = await startCluster();
  flags = {
    ...agentFlags(cluster),
    evictionLimitsPerNode: "1",
    serverAddress: `127.0.0.1:${await freePort()}`,
  };
  reader = statusReader(flags.serverAddress!);
  mkdirSync(flags.pluginDirectories!, { recursive: true });
  disk = SmallDisk.mount(flags.stateDir!);
  // Only root can mount.
  if (!disk) return context.skip();
  plugin = await startEvictionPlugin(flags.pluginDirectories!, "pressure");
  plugin.top = (offered, pods) => pick(offered.slice(0, 1))(offered, pods);
});

afterEach(async () => {
  await kill();
  await plugin?.stop();
  disk?.[Symbol.dispose]();
  await cluster.stop();
});

async function start(): Promise<void> {
  agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(flags)]);
  await until("the server", () => reader.ready().catch(() => undefined), { explain: agent.output });
}

async function kill(): Promise<void> {
  agent?.kill("SIGKILL");
  await agent?.ended;
}

/** Waits until a threshold is met and on hold because of the limit; a round may evict before that. */
async function untilHeld(): Promise<void> {
  await until("the limit holds the next eviction", () => agent?.output().includes('"reason":"nodeLimit"'), {
    explain: agent?.output,
  });
}

const makeFaulty = { full: () => disk!.fill(), "read-only": () => disk!.makeReadOnly() };

describe.for(["full", "read-only"] as const)("killed, and started again on a %s disk", (fault) => {
  it("the limit of evictions holds", async () => {
    for (const name of ["web-1", "web-2"]) cluster.addPod(name);
    await start();
    plugin.threshold = { ...hardPressure };
    await untilHeld();
    await kill();
    makeFaulty[fault]();
    await start();
    await untilHeld();
    await untilNextRounds(plugin);
    expect(cluster.evictions()).toHaveLength(1);
    expect((await reader.ready()).text).toMatch(/failed: .*NK1105/);
  });

  it("the newest report stays published", async () => {
    const reporter = await startGoodPlugin(flags.pluginDirectories!, "steady", widgets("steady", 1));
    await start();
    await untilWidgets(cluster, "steady", 1);
    // The file has the first report, the write-ahead log the second.
    const raw = new DatabaseSync(`${flags.stateDir}/nodekeeper.db`);
    await until("the first report is in the file", () => {
      raw.exec("PRAGMA wal_checkpoint(FULL)");
      return raw.prepare("SELECT 1 FROM reporter_content").get() !== undefined;
    });
    raw.close();
    reporter.say(widgets("steady", 2));
    await untilWidgets(cluster, "steady", 2);
    await kill();
    await reporter.stop();
    makeFaulty[fault]();
    const seen = cluster.requests.length;
    await start();
    // A plugin that comes later shows that the agent publishes.
    const later = await startGoodPlugin(flags.pluginDirectories!, "later", widgets("later", 1));
    await untilWidgets(cluster, "later", 1);
    await later.stop();
    const written = cluster.requests.slice(seen).map(({ body }) => JSON.stringify(body) ?? "");
    expect(written.filter((body) => /widgets\.example\/steady":"1"/.test(body))).toEqual([]);
    expect(cluster.widgets("steady")).toBe("2");
  });
});

it("the limit holds for an eviction that a full disk kept out of the database, also after SIGKILL", async () => {
  for (const name of ["web-1", "web-2"]) cluster.addPod(name);
  await start();
  disk!.fill();
  plugin.threshold = { ...hardPressure };
  await untilHeld();
  await kill();
  await start();
  await untilHeld();
  await kill();
  disk!.empty();
  await start();
  await untilHeld();
  expect(cluster.evictions()).toHaveLength(1);
});

it("an eviction that can be recorded nowhere is not sent, and explain and the log state why", async () => {
  const uid = cluster.addPod("web");
  // A copy of the state directory would have what is in it: nothing is kept beside this socket.
  flags.apiSocket = `${flags.stateDir}/agent.sock`;
  await start();
  disk!.fill();
  plugin.threshold = { ...hardPressure };
  await until("it is explained", async () =>
    JSON.stringify(await reader.api(`eviction/explain?pod=${uid}`)).includes(
      "not sent: neither the state directory",
    ),
  );
  expect(agent!.output()).toMatch(/"errorId":"NK1601"[^\n]*not sent: neither[^\n]*eviction is retried/);
  expect(cluster.evictions()).toEqual([]);
  disk!.empty();
  await until("the eviction", () => cluster.evictions().length > 0, { explain: agent?.output });
});
