import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { customNodeResource, status } from "@nodekeeper/sdk";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it, vi } from "vitest";
import { StateDatabase } from "../packages/agent/src/state/index.ts";
import { agentFlags, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster } from "./support/cluster.ts";
import { constantly, rawField, startBarePlugin, widgets } from "./support/plugins.ts";
import { argumentsOf, startScript } from "./support/processes.ts";
import { setUp } from "./support/setup.ts";

describe.concurrent("the state database", () => {
  it("on a full disk: the agent continues to publish, health reports it, and it recovers", async () => {
    const opened = vi.spyOn(StateDatabase, "open");
    await using setup = await setUp();
    const { cluster, plugin, agent } = setup;
    const own = opened.mock.calls.findIndex(([{ directory }]) => directory === agent.stateDir);
    const { connection } = opened.mock.results[own]!.value as StateDatabase;
    opened.mockRestore();
    const { page_count: pages } = connection.prepare("PRAGMA page_count").get() as { page_count: number };
    // SQLite answers SQLITE_FULL at its page limit just as on a full disk.
    connection.exec(`PRAGMA max_page_count = ${pages}`);
    const bulk = customNodeResource(status("bulk", "x".repeat(100_000)));
    plugin.say(widgets("steady", 2), bulk);
    await untilBulk(2);
    const failing = await until("health reports it", async () => {
      const answer = await agent.ready();
      return (
        answer.status === 503 && /\[-\]ReporterFetcherReady.*checkpoint.*full/.test(answer.text) && answer
      );
    });
    expect(failing.text).toContain("[+]ReporterPublished ok");
    await until("it is counted", async () =>
      /nodekeeper_reporting_checkpoint_failures_total [1-9]/.test(await agent.metrics()),
    );
    plugin.say(widgets("steady", 3));
    plugin.say(widgets("steady", 4), bulk);
    await untilBulk(4);

    connection.exec("PRAGMA max_page_count = 100000");
    plugin.say(widgets("steady", 5), bulk);
    await untilBulk(5);
    await until("it is ready again", async () => (await agent.ready()).status === 200);
    const reports = agent.logLines.filter(({ msg }) =>
      msg?.startsWith("failed to write the reporter checkpoint"),
    );
    expect(reports).toHaveLength(1);

    await setup.restart(() => plugin.stop());
    await until(
      "what was saved is restored",
      async () => (await setup.agent.plugin("steady"))?.state === "lost",
    );
    expect(cluster.widgets("steady")).toBe("5");

    async function untilBulk(value: number) {
      await untilWidgets(cluster, "steady", value);
      expect(cluster.cnr().status.bulk).toHaveLength(100_000);
    }
  });

  it("that is corrupt is set aside and reported, and withdraws nothing of live plugins", async () => {
    await using setup = await setUp();
    const { cluster, plugin } = setup;
    // It takes its time to answer, so that an agent without memory has nothing of it when it could write first.
    const slowService = constantly(widgets("slow", 1));
    const slow = await startBarePlugin(setup.agent.pluginDir, "slow", {
      getReportContent: (request, context) =>
        sleep(300).then(() => slowService.getReportContent(request, context)),
      async *listAndWatchReportContent(request, context) {
        await sleep(300);
        yield* slowService.listAndWatchReportContent(request, context);
      },
    });
    await untilWidgets(cluster, "slow", 1);
    const seen = cluster.requests.length;
    await setup.restart(() => {
      const path = join(setup.agent.stateDir, "nodekeeper.db");
      writeFileSync(path, Buffer.alloc(16_384, "not a database "));
    });
    const aside = readdirSync(setup.agent.stateDir).filter((name) => name.includes("corrupt"));
    expect(aside.length).toBeGreaterThan(0);
    const report = setup.agent.logLines.find(({ msg }) => msg?.startsWith("state database is corrupt"));
    expect(report).toMatchObject({
      level: "error",
      setAside: expect.stringContaining("nodekeeper.db.corrupt-"),
    });
    plugin.say(widgets("steady", 2));
    await untilWidgets(cluster, "steady", 2);
    const withdrawing = cluster.requests
      .slice(seen)
      .filter(({ method, path, body }) => method === "PATCH" && path.endsWith("/status") && body)
      .filter(({ body }) => !/example\/slow.*example\/steady/.test(JSON.stringify(body)));
    expect(withdrawing).toEqual([]);
    slow.stop();
  });

  it("that was lost: nothing of live plugins is withdrawn, what one no longer reports is removed", async () => {
    // Long enough for a plugin to come back on a machine that is slow; ended by the clock.
    const GRACE_MS = 600_000;
    const clock = new SteppedClock();
    await using setup = await setUp({ reportingPluginGracePeriod: `${GRACE_MS}ms` }, clock);
    const { cluster, plugin } = setup;
    plugin.say(widgets("steady", 2), customNodeResource(status("extra", 1)));
    await until("the extra field", () => cluster.cnr().status.extra === 1);
    const seen = cluster.requests.length;
    await setup.restart(() => {
      writeFileSync(join(setup.agent.stateDir, "nodekeeper.db"), "");
      plugin.say(widgets("steady", 3));
    });
    await untilWidgets(cluster, "steady", 3);
    const statuses = cluster.requests
      .slice(seen)
      .filter(({ method, path, body }) => method === "PATCH" && path.endsWith("/status") && body);
    for (const { body } of statuses) expect(JSON.stringify(body)).toContain("example/steady");
    clock.advance(GRACE_MS);
    await until("the field no plugin reports is removed", () => !("extra" in cluster.cnr().status));
  });

  it("keeps the good value of a field in which a plugin slipped, also when the agent starts again", async () => {
    await using setup = await setUp();
    const { cluster, plugin } = setup;
    const policy = () => cluster.cnr().status.topologyPolicy;
    plugin.say(widgets("steady", 2), rawField("topologyPolicy", '"numeric"'));
    await until("the policy", () => policy() === "numeric");
    plugin.say(widgets("steady", 3), rawField("topologyPolicy", '"num'));
    await untilWidgets(cluster, "steady", 3);
    await setup.restart();
    plugin.say(widgets("steady", 4), rawField("topologyPolicy", '"nume'));
    await untilWidgets(cluster, "steady", 4);
    expect(policy()).toBe("numeric");
  });

  it("that can't be written at the start: the agent publishes, is not ready, and reports why", async () => {
    // Not even root can make a directory here.
    await using setup = await setUp({ stateDir: "/sys/nodekeeper" });
    const { cluster, plugin, agent } = setup;
    plugin.say(widgets("steady", 2));
    await untilWidgets(cluster, "steady", 2);
    const { status, text } = await agent.ready();
    expect(status).toBe(503);
    expect(text).toMatch(/\[-\]StateDatabaseReady.*kept in memory, \/sys\/nodekeeper.*(EPERM|EROFS|EACCES)/);
    await until("the metric", async () => (await agent.metrics()).includes("nodekeeper_state_persistent 0"));
    expect(
      agent.logLines.filter(({ msg }) => msg?.startsWith("failed to open the state database")),
    ).toHaveLength(1);
  });

  it("that was removed under the running agent is noticed", async () => {
    await using setup = await setUp();
    const { agent } = setup;
    await until("it is ready", async () => (await agent.ready()).status === 200);
    rmSync(join(agent.stateDir, "nodekeeper.db"));
    expect((await agent.ready()).text).toMatch(/\[-\]StateDatabaseReady.*was removed or replaced/);
    await agent.ready();
    expect(agent.logLines.filter(({ msg }) => msg?.includes("was removed or replaced"))).toHaveLength(1);
  });

  it("of an agent that runs: a second agent exits and names the first", async () => {
    await using setup = await setUp();
    const { cluster } = setup;
    const second = startScript("packages/agent/src/main.ts", [
      "run",
      ...argumentsOf({ ...agentFlags(cluster), apiSocket: join(cluster.directory, "second.sock") }),
    ]);
    expect(await second.ended).toBe(1);
    expect(second.output()).toMatch(
      new RegExp(
        `state directory ${setup.agent.stateDir} is in use by another agent: process ${process.pid} on .*since 20`,
      ),
    );
    await until("the first is ready", async () => (await setup.agent.ready()).status === 200);
  });

  it("of a newer agent is set aside, and the agent publishes", async () => {
    await using setup = await setUp();
    const { cluster, plugin } = setup;
    await setup.restart(() => {
      const raw = new DatabaseSync(join(setup.agent.stateDir, "nodekeeper.db"));
      raw.exec("PRAGMA user_version = 99");
      raw.close();
    });
    plugin.say(widgets("steady", 2));
    await untilWidgets(cluster, "steady", 2);
    await until("it is ready", async () => (await setup.agent.ready()).status === 200);
    expect(readdirSync(setup.agent.stateDir)).toContainEqual(
      expect.stringContaining("nodekeeper.db.schema-99-"),
    );
    expect(setup.agent.logLines).toContainEqual(
      expect.objectContaining({
        msg: expect.stringContaining("by a newer agent: set aside"),
        setAside: expect.any(String),
      }),
    );
  });

  it("with rows that can't be read back: each costs itself alone", async () => {
    await using setup = await setUp();
    const { cluster, plugin } = setup;
    await setup.restart(() => {
      const raw = new DatabaseSync(join(setup.agent.stateDir, "nodekeeper.db"));
      const garbage = "x'0a7f'";
      const cnr = "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource";
      raw.exec(`INSERT INTO reporter_content (plugin, content, updated_at) VALUES ('garbled', ${garbage}, 1);
                INSERT INTO stand_in VALUES ('${cnr}', 'status', 'garbled', ${garbage});
                INSERT INTO stand_in VALUES ('no/such/Kind', 'neither', 'steady', ${garbage})`);
      raw.close();
    });
    expect((await setup.agent.plugin("garbled"))?.problems.join()).toContain("can't be decoded");
    plugin.say(widgets("steady", 2));
    await untilWidgets(cluster, "steady", 2);
    expect(setup.agent.logLines).toContainEqual(
      expect.objectContaining({ plugin: "garbled", msg: expect.stringContaining("failed to restore") }),
    );
  });

  it("whose directory can't be created is an error that names it", async () => {
    const cluster = await startCluster();
    writeFileSync(join(cluster.directory, "file"), "");
    const stateDir = join(cluster.directory, "file", "state");
    await expect(startAgent(cluster, { stateDir })).rejects.toThrow(
      `state directory ${stateDir} can't be created`,
    );
    await cluster.stop();
  });
});
