import { mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HistoryStore, StateCopy, StateDatabase } from "./index.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nks-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

const open = () => StateDatabase.open({ directory, clock: systemClock, log: silentLogger });
const bounds = { maxAgeMs: 1e12, mostLeft: 10 };
const addEvent = (store: HistoryStore, message: string) =>
  store.save({ pods: [], events: [{ uid: "", at: 1, message }], watchedAt: 1, cursor: null }, bounds);
const contents = () =>
  Object.fromEntries(
    readdirSync(directory)
      .filter((name) => !name.endsWith("-shm"))
      .map((name) => [name, readFileSync(join(directory, name)).toString("base64")]),
  );

describe("a copy of a state directory", () => {
  it("holds what the agent that still has it has committed, and changes nothing there", async () => {
    using database = open();
    addEvent(new HistoryStore(database), "while it runs");
    const before = contents();
    expect(before).toHaveProperty("nodekeeper.db-wal");
    using copy = await StateCopy.of(directory, systemClock);
    expect(new HistoryStore(copy.database).events("")).toMatchObject([{ message: "while it runs" }]);
    addEvent(new HistoryStore(copy.database), "in the copy alone");
    expect(contents()).toEqual(before);
  });

  it("is removed when it is closed", async () => {
    open().close();
    // A directory of this test: in the system's, other processes make and remove copies.
    const temporary = mkdtempSync(join(tmpdir(), "nk-copies-"));
    vi.stubEnv("TMPDIR", temporary);
    const copy = await StateCopy.of(join(directory, "nodekeeper.db"), systemClock);
    expect(readdirSync(temporary)).toHaveLength(1);
    copy.close();
    expect(readdirSync(temporary)).toEqual([]);
    rmdirSync(temporary);
  });

  it.each<[string, () => void, string, RegExp]>([
    ["without a database", () => {}, "notFound", /has no nodekeeper\.db/],
    [
      "with another file in its place",
      () => writeFileSync(join(directory, "nodekeeper.db"), "not a database ".repeat(1_000)),
      "corrupt",
      /not a state database, or it is corrupt/,
    ],
    [
      "of a newer agent",
      () => {
        open().close();
        const database = new DatabaseSync(join(directory, "nodekeeper.db"));
        database.exec("PRAGMA user_version = 999");
        database.close();
      },
      "unsupported",
      /newer nodekeeper/,
    ],
  ])("%s is refused, and left as it is", async (_name, prepare, code, message) => {
    prepare();
    const before = contents();
    await expect(StateCopy.of(directory, systemClock)).rejects.toMatchObject({
      code,
      id: code === "unsupported" ? "NK1104" : "NK1107",
      message: expect.stringMatching(message),
    });
    expect(contents()).toEqual(before);
  });
});
