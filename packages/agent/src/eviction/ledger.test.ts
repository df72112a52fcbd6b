import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptyEvictionState } from "@nodekeeper/api/decide";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { EvictionStore, StateDatabase } from "../state/index.ts";
import { EvictionLedger } from "./ledger.ts";
import { createEvictionMetrics } from "./metrics.ts";
import { EvictionRecords } from "./records/records.ts";

let directory: string;
let database: StateDatabase;
let clock: FakeClock;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkl-"));
  clock = new FakeClock();
  database = StateDatabase.open({ directory, clock, log: silentLogger });
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

function recordsOf(): EvictionRecords {
  return new EvictionRecords({
    store: new EvictionStore(database),
    settings: () => ({ maxAge: 3_600_000, maxSize: 64 * 1024 * 1024 }),
    clock,
    log: silentLogger,
  });
}

/** A ledger as each process has its own. A process that is killed calls nothing else. */
function newLedger(): EvictionLedger {
  return new EvictionLedger({
    records: recordsOf(),
    signals: { add: () => {}, close: () => {} },
    bootTime,
    metrics: createEvictionMetrics(new Registry()),
    clock,
    log: silentLogger,
  });
}

/** Saves the state of a process that has just evicted a pod. */
function saveEviction(): void {
  const at = clock.now();
  const evicted = { uid: "web", namespace: "default", ownerUid: null, plugin: "pressure", scope: "memory" };
  const recent = [{ ...evicted, at, releasedAt: null }];
  recordsOf().saveState({ ...emptyEvictionState(), at, boot: bootTime(), recent }, []);
}

/** Returns the ages of the evictions in milliseconds, as the next process calculates them. */
function agesAfterStart(): number[] {
  const ledger = newLedger();
  ledger.restore();
  const { now, state } = ledger.prepare([]);
  return state.recent.map(({ at }) => now - at);
}

const bootTime = () => ({ id: "boot", uptimeMs: clock.monotonic() });

it("writes the end of an eviction to the database before any round records it", () => {
  const refused = { uid: "web", result: "failed" as const, message: "429: no disruption is allowed now" };
  newLedger().outcome(refused);
  expect(newLedger().restore().ended).toEqual([refused]);
});

it("ages evictions by the time that has passed, although the clock was stepped in a life without a round", async () => {
  saveEviction();
  await clock.step(10_000);
  const second = newLedger();
  second.restore();
  clock.jump(3_600_000);
  second.close();
  await clock.step(10_000);
  expect(agesAfterStart()).toEqual([20_000]);
});

it("does not record a request later that could not be recorded and was not sent", async () => {
  saveEviction();
  const first = newLedger();
  first.restore();
  await clock.step(10_000);
  database.connection.exec("PRAGMA query_only = 1");
  const at = clock.monotonic();
  expect(first.progress({ uid: "web", stage: "sending", at, deadline: null })).toBe(false);
  database.connection.exec("PRAGMA query_only = 0");
  first.close();
  expect(agesAfterStart()).toEqual([10_000]);
});
