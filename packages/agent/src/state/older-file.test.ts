import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ClaimStore } from "./claim-store.ts";
import { StateDatabase } from "./database.ts";
import { createSchema } from "./definitions.ts";
import { salvageFrom } from "./open-file.ts";
import { ReporterStore } from "./reporter-store.ts";

let directory: string;
let path: string;
let raw: DatabaseSync;

const claim = {
  driver: "gpu.example.com",
  uid: "1",
  namespace: "default",
  name: "claim",
  state: "prepared" as const,
  boot: "boot-1",
  devices: "[]",
  cdi: "",
  updated_at: 5,
  configuration: "[]",
  pods: "[]",
};
const { updated_at: updatedAt, ...fields } = claim;
const stored = { ...fields, updatedAt, details: "null" };
const insertOld = (database: DatabaseSync, uid: string) =>
  database
    .prepare(
      `INSERT OR REPLACE INTO claim (${Object.keys(claim).join(", ")}) VALUES (${Object.keys(claim)
        .map(() => "?")
        .join(", ")})`,
    )
    .run(...Object.values({ ...claim, uid }));

const report = { plugin: "reporter", content: Uint8Array.of(1), updatedAt: 5, stoppedAt: 4 };

// A file of an agent before the columns `details` and `stopped_…`, and the tables of statuses and of the archive.
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nko-"));
  path = join(directory, "nodekeeper.db");
  raw = new DatabaseSync(path);
  createSchema(raw);
  raw.exec(
    `ALTER TABLE claim DROP COLUMN details; DROP TABLE claim_status;
     ALTER TABLE reporter_content DROP COLUMN stopped_boot; ALTER TABLE reporter_content DROP COLUMN stopped_uptime;
     INSERT INTO reporter_content (plugin, content, updated_at, stopped_at) VALUES ('reporter', x'01', 5, 4);
     DROP TABLE archive_queue; DROP TABLE archive_source; DROP TABLE archive_trace`,
  );
  insertOld(raw, "1");
});
afterEach(() => rmSync(directory, { recursive: true }));

it("of an older agent keeps its claims and reports, and the older agent can use the file again", () => {
  raw.close();
  const errors: unknown[] = [];
  const log = {
    ...silentLogger,
    error: (fields: unknown) => void errors.push(fields),
  } as typeof silentLogger;
  const database = StateDatabase.open({ directory, clock: systemClock, log });
  expect(new ClaimStore(database).claims()).toEqual([stored]);
  expect(new ReporterStore(database).contents()).toEqual([report]);
  expect(errors).toEqual([]);
  database.close();
  const older = new DatabaseSync(path);
  insertOld(older, "2");
  older.close();
  const again = StateDatabase.open({ directory, clock: systemClock, log: silentLogger });
  expect(new ClaimStore(again).claims()).toEqual([stored, { ...stored, uid: "2" }]);
  expect(again.setAside).toBeUndefined();
  again.close();
});

it("of an older agent keeps its claims and reports also if it is damaged", () => {
  raw.close();
  using to = new DatabaseSync(":memory:");
  createSchema(to);
  expect(salvageFrom(path, to)).toEqual([]);
  expect(to.prepare("SELECT uid, details FROM claim").all()).toEqual([{ uid: "1", details: "null" }]);
  expect(to.prepare("SELECT plugin, stopped_at, stopped_boot FROM reporter_content").all()).toEqual([
    { plugin: "reporter", stopped_at: 4, stopped_boot: null },
  ]);
});
