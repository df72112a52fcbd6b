import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { decide } from "../../eviction/decide/decide.ts";
import { EvictionRecords, RecordQueries, type RoundRecord } from "../../eviction/index.ts";
import type { TestPlugin, TestRounds } from "../../eviction/testing/rounds.ts";
import { EvictionStore, HistoryStore, StateDatabase } from "../../state/index.ts";
import { evictionRoutes } from "../index.ts";
import { serveRoutes } from "./serve-routes.ts";

/** Eviction's records in SQLite, and the routes of the JSON API that read them over HTTP. */
export interface ServedRecords {
  /** Of the database; removed by `stop`. */
  directory: string;
  records: EvictionRecords;
  /** "127.0.0.1:41235" */
  address: string;
  /** Plays the next round and records it, with steps (UID and message) since the round before. */
  play(
    rounds: TestRounds,
    plugins: Record<string, TestPlugin>,
    steps?: readonly (readonly [string, string])[],
  ): RoundRecord;
  stop(): Promise<void>;
}

/** Serves records of which none expires. */
export async function serveRecords(): Promise<ServedRecords> {
  const directory = mkdtempSync(join(tmpdir(), "nks-"));
  const common = { clock: systemClock, log: silentLogger };
  const database = StateDatabase.open({ directory, ...common });
  const bounds = { maxAgeMs: Number.MAX_SAFE_INTEGER, maxBytes: 64 * 1024 * 1024 };
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
