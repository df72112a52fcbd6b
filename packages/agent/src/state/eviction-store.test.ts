import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { StateDatabase } from "./database.ts";
import { EvictionStore } from "./eviction-store.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nke-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(root, { recursive: true });
});

const bounds = { maxAgeMs: 1e9, maxBytes: 1e9 };
const stateOf = (pod: string) => JSON.stringify({ version: 2, pending: [{ uid: pod }] });

/** Calls `use` with an agent's store, then ends the agent like SIGKILL. */
function run<T>(use: (store: EvictionStore, database: StateDatabase) => T): T {
  const directory = join(root, "state");
  const common = { clock: new FakeClock(), log: silentLogger, bootId: "boot-1" };
  const database = StateDatabase.open({ ...common, directory, bootDirectory: join(root, "run") });
  try {
    return use(new EvictionStore(database), database);
  } finally {
    database.close();
  }
}

const newest = () => run((store) => JSON.parse(store.states()[0]!.text).pending[0].uid);

describe("the state of eviction", () => {
  it("is that of the copy for the boot, even after a kill, if the database was replaced by one with more saves", () => {
    run((store) => {
      for (const pod of ["old", "old", "old"]) store.save({ state: stateOf(pod), steps: [] }, bounds);
    });
    cpSync(join(root, "state"), join(root, "other"), { recursive: true });
    for (const name of ["state", "run"]) rmSync(join(root, name), { recursive: true });
    run((store) => store.save({ state: stateOf("new"), steps: [] }, bounds));
    rmSync(join(root, "state"), { recursive: true });
    cpSync(join(root, "other"), join(root, "state"), { recursive: true });

    expect(newest()).toBe("new");
    expect(newest()).toBe("new");
  });

  it("is saved for the boot if the database can be neither written nor read", () => {
    run((store) => store.save({ state: stateOf("a"), steps: [] }, bounds));
    run((store, database) => {
      store.states();
      const fail = () => {
        throw new Error("disk I/O error");
      };
      vi.spyOn(database, "transaction").mockImplementation(fail);
      vi.spyOn(database, "first").mockImplementation(fail);
      expect(() => store.save({ state: stateOf("b"), steps: [] }, bounds)).toThrow("disk I/O error");
      store.saveForBoot(stateOf("b"));
      expect(store.isStateKept).toBe(true);
    });
    expect(newest()).toBe("b");
  });
});
