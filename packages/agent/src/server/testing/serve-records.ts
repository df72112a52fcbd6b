import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decide } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { EvictionRecords, RecordQueries } from "../../eviction/index.ts";
import type { TestPlugin, TestRounds } from "../../eviction/testing/rounds.ts";
import { EvictionStore, HistoryStore, StateDatabase } from "../../state/index.ts";
import { evictionRoutes } from "../index.ts";
import { serveRoutes } from "./serve-routes.ts";

/** Eviction records in SQLite, served by the routes of the JSON API over HTTP. */
export interface ServedRecords {
  /** State directory; removed by `stop`. */
  directory: string;
  records: EvictionRecords;
  /** "127.0.0.1:41235" */
  address: string;
  /** Plays and records the next round, with steps (UID and message) since the previous round. */
  play(
    rounds: TestRounds,
    plugins: Record<string, TestPlugin>,
    steps?: readonly (readonly [string, string])[],
  ): RoundRecord;
  stop(): Promise<void>;
}

/** Serves records that do not expire. */
export async function serveRecords(): Promise<ServedRecords> {
  const directory = mkdtempSync(join(tmpdir(), "nks-"));
  const common = { clock: systemClock, log: silentLogger };
  const database = StateDatabase.open({ directory, ...common });
  const bounds = { maxAge: Number.MAX_SAFE_INTEGER, maxSize: 64 * 1024 * 1024 };
  const records = new EvictionRecords({
    store: new EvictionStore(database),
    settings: () => bounds,
    ...common,
  });
  const queries = new RecordQueries(records, new HistoryStore(database));
  const server = await serveRoutes(evictionRoutes(queries));
  return {
    directory,
    records,
    address: server.address,
    play(rounds, plugins, steps = []) {
      const input = structuredClone(rounds.input(plugins));
      const record = { id: records.nextId, input, decision: decide(input) };
      rounds.state = record.decision.state;
      rounds.outcomes = [];
      records.save(
        record,
        steps.map(([uid, message]) => ({ uid, at: rounds.now, message })),
      );
      return record;
    },
    async stop() {
      await server.stop();
      database.close();
      rmSync(directory, { recursive: true });
    },
  };
}
