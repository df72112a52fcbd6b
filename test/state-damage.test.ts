import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { untilWidgets } from "./support/agent.ts";
import { widgets } from "./support/plugins.ts";
import { type Setup, setUp } from "./support/setup.ts";

// Beyond what a number of JavaScript can hold.
const TOO_LARGE = "9223372036854775807";

const fileOf = ({ agent }: Setup) => join(agent.stateDir, "nodekeeper.db");

function execute(setup: Setup, sql: string): void {
  const raw = new DatabaseSync(fileOf(setup));
  raw.exec(`PRAGMA foreign_keys = OFF; ${sql}`);
  raw.close();
}

const asides = ({ agent }: Setup) =>
  readdirSync(agent.stateDir).filter((name) => /nodekeeper\.db\.(corrupt|damaged)/.test(name));

/** What the agent logged of damage: each table with what was lost. */
const lost = ({ agent }: Setup) =>
  agent.logLines.filter(({ errorId }) => errorId === "NK1108").flatMap(({ damage }) => damage);

async function publishesAndIsReady({ plugin, cluster, agent }: Setup, value: number): Promise<void> {
  plugin.say(widgets("steady", value));
  await untilWidgets(cluster, "steady", value);
  await until("it is ready", async () => (await agent.ready()).status === 200);
}

const rows: readonly [table: string, sql: string][] = [
  [
    "reporter_content",
    `INSERT INTO reporter_content (plugin, content, updated_at) VALUES ('a', x'00', ${TOO_LARGE})`,
  ],
  ["lifecycle_log", `INSERT OR REPLACE INTO lifecycle_log VALUES (1, 'log', ${TOO_LARGE})`],
  [
    "lifecycle_event",
    `INSERT INTO lifecycle_event VALUES (5, ${TOO_LARGE}, 'x', 'u', 'd', 'n', NULL, NULL, NULL, NULL, '')`,
  ],
  ["node_pod", `INSERT INTO node_pod VALUES ('u', 'd', 'n', ${TOO_LARGE}, NULL, '{}', NULL)`],
  ["node_event", `INSERT INTO node_event (uid, at, message) VALUES ('', ${TOO_LARGE}, 'x')`],
  ["node_watch", `INSERT OR REPLACE INTO node_watch VALUES (1, ${TOO_LARGE}, NULL)`],
  ["mark", `INSERT INTO mark (at, kind, title) VALUES (${TOO_LARGE}, 'agentStarted', 'x')`],
  ["mark", `INSERT INTO mark (id, at, kind, title) VALUES (${TOO_LARGE}, 1, 'agentStarted', 'x')`],
  ["eviction_step", `INSERT INTO eviction_step (uid, at, message) VALUES ('u', ${TOO_LARGE}, 'x')`],
  ["record_age", `INSERT OR REPLACE INTO record_age VALUES (1, ${TOO_LARGE}, 0, NULL, NULL)`],
  ["record_coverage", `INSERT OR REPLACE INTO record_coverage VALUES (1, ${TOO_LARGE}, 0, 0)`],
  ["record_gap", `INSERT INTO record_gap (from_at, to_at, why) VALUES (${TOO_LARGE}, 0, 'x')`],
  ["continuity", `INSERT OR REPLACE INTO continuity VALUES (1, 'x', ${TOO_LARGE})`],
  [
    "claim",
    `INSERT INTO claim (driver, uid, namespace, name, state, boot, devices, cdi, updated_at, configuration, pods)
     VALUES ('d', 'u', 'n', 'c', 'prepared', 'b', '[]', '', ${TOO_LARGE}, '[]', '[]')`,
  ],
  [
    "claim",
    `INSERT INTO claim (driver, uid, namespace, name, state, boot, devices, cdi, updated_at, configuration, pods)
     VALUES ('d', 'u2', 'n', 'c', 'prepared', 'b', 'no JSON', '', 1, '[]', '[]')`,
  ],
  [
    "eviction_round",
    `INSERT INTO eviction_base (id, body) VALUES (77, x'00');
     INSERT INTO eviction_round (id, at, base, body) VALUES (77, ${TOO_LARGE}, 77, x'00')`,
  ],
];

describe("a database of which a part is damaged", () => {
  it("rows that can't be read cost themselves alone, and are reported", async () => {
    await using setup = await setUp();
    await setup.restart(() => {
      for (const [, sql] of rows) execute(setup, sql);
    });
    const counts = new Map<string, number>();
    for (const [table] of rows) counts.set(table, (counts.get(table) ?? 0) + 1);
    const expected = [...counts].map(([table, count]) => ({
      table,
      holds: expect.any(String),
      lost: count === 1 ? "1 row" : `${count} rows`,
    }));
    expect(lost(setup)).toEqual(expected.toSorted((a, b) => (a.table < b.table ? -1 : 1)));
    await publishesAndIsReady(setup, 2);
    expect(asides(setup)).toEqual([]);
  });

  it("missing tables cost themselves alone, and are reported", async () => {
    await using setup = await setUp();
    const raw = new DatabaseSync(fileOf(setup));
    const tables = raw
      .prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
      )
      .all()
      .map(({ name }) => name as string);
    raw.close();
    for (const value of [2, 3]) {
      const dropped = tables.filter((_, at) => at % 2 === value % 2);
      await setup.restart(() => execute(setup, dropped.map((table) => `DROP TABLE ${table}`).join("; ")));
      // Files of older agents do not have them.
      const known = dropped.filter((table) => table !== "claim_status" && !table.startsWith("archive_"));
      expect(lost(setup)).toEqual(
        known.map((table) => ({ table, holds: expect.any(String), lost: "the table" })),
      );
      await publishesAndIsReady(setup, value);
    }
    expect(asides(setup)).toEqual([]);
  });

  it("what other pages have is kept, and the damaged file is set aside", async () => {
    await using setup = await setUp();
    await setup.restart(() => {
      execute(
        setup,
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO mark (at, kind, title) SELECT 1700000000000 + i, 'pluginLost', 'mark ' || i || ' ' || hex(zeroblob(100)) FROM n;
         VACUUM; PRAGMA wal_checkpoint(TRUNCATE)`,
      );
      const bytes = readFileSync(fileOf(setup));
      const LEAF = 13;
      for (let page = 0; page < bytes.length; page += 4_096) {
        const content = bytes.subarray(page, page + 4_096);
        if (content[0] === LEAF && content.includes("mark 100 ")) content.fill(0x5a);
      }
      writeFileSync(fileOf(setup), bytes);
    });
    expect(lost(setup)).toContainEqual({
      table: "mark",
      holds: expect.any(String),
      lost: "rows on damaged pages",
    });
    const { items } = await setup.agent.api("marks");
    const titles = items.map(({ title }: { title: string }) => title.replace(/ 0+$/, ""));
    for (const number of [1, 50, 150, 200]) expect(titles).toContain(`mark ${number}`);
    expect(titles).not.toContain("mark 100");
    expect(await setup.agent.plugin("steady")).toBeDefined();
    await publishesAndIsReady(setup, 2);
    expect(asides(setup)).toHaveLength(1);
  });
});
