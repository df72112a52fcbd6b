import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { EvictionStore, StateDatabase } from "../state/index.ts";
import { EvictionLedger } from "./ledger.ts";
import { createEvictionMetrics } from "./metrics.ts";
import { EvictionRecords } from "./records/records.ts";

it("writes the end of an eviction to the database before any round records it", () => {
  const directory = mkdtempSync(join(tmpdir(), "nkl-"));
  const common = { clock: new FakeClock(), log: silentLogger };
  const database = StateDatabase.open({ directory, ...common });
  const ledger = () =>
    new EvictionLedger({
      records: new EvictionRecords({
        store: new EvictionStore(database),
        settings: () => ({ maxAge: 3_600_000, maxSize: 64 * 1024 * 1024 }),
        ...common,
      }),
      signals: { add: () => {}, close: () => {} },
      bootTime: () => ({ id: "boot", uptimeMs: common.clock.monotonic() }),
      metrics: createEvictionMetrics(new Registry()),
      ...common,
    });
  const refused = { uid: "web", result: "failed" as const, message: "429: no disruption is allowed now" };
  ledger().outcome(refused);
  // A process that is killed calls nothing else. The next one has another ledger.
  expect(ledger().restore().ended).toEqual([refused]);
  database.close();
  rmSync(directory, { recursive: true });
});
