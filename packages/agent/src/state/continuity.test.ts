import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fillUp } from "../../../../test/support/full-database.ts";
import { BootDirectory } from "./boot-directory.ts";
import { ReporterStore, StateDatabase } from "./index.ts";

let root: string;
let directory: string;
let bootDirectory: string | undefined;
let open: StateDatabase[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nk-continuity-"));
  directory = join(root, "state");
  bootDirectory = join(root, "run");
  open = [];
});

afterEach(() => {
  for (const database of open) database.close();
  rmSync(root, { recursive: true, force: true });
});

/** Another agent; `copy` is what it leaves behind if it is killed now. */
function start(bootId = "boot-1"): StateDatabase {
  const common = { clock: new FakeClock(), log: silentLogger, bootId };
  const database = StateDatabase.open({ ...common, directory, bootDirectory });
  open.push(database);
  return database;
}

function write(database: StateDatabase, plugin = "a"): void {
  const content = { plugin, content: new Uint8Array([1]), updatedAt: 5, stoppedAt: null };
  new ReporterStore(database).saveContents([content], []);
}

function startAndWrite(): void {
  const database = start();
  write(database);
  database.close();
}

const restoreOlder = () => {
  startAndWrite();
  copy();
  startAndWrite();
  restore();
};
const copy = (name = "copy") => cpSync(directory, join(root, name), { recursive: true });

function restore(name = "copy"): void {
  rmSync(directory, { recursive: true });
  cpSync(join(root, name), directory, { recursive: true });
}

describe("a store is known to be the newest", () => {
  it.each<[string, string, () => void]>([
    ["at the first start", "unknown", () => {}],
    ["after a stop", "newest", startAndWrite],
    [
      "after a kill",
      "newest",
      () => {
        const database = start();
        write(database);
        copy();
        database.close();
        restore();
      },
    ],
    [
      "after a kill between a commit and its mark",
      "newest",
      () => {
        startAndWrite();
        const mark = join(bootDirectory!, markFile());
        const before = readFileSync(mark);
        startAndWrite();
        writeFileSync(mark, before);
      },
    ],
    [
      "after a start that wrote nothing since an unproven one",
      "behind",
      () => {
        restoreOlder();
        start().close();
      },
    ],
    [
      "after a restore",
      "behind",
      () => {
        restoreOlder();
      },
    ],
    [
      "after a restore of what was before another restore",
      "behind",
      () => {
        startAndWrite();
        copy("old");
        for (let at = 0; at < 5; at++) startAndWrite();
        copy("later");
        restore("old");
        startAndWrite();
        restore("later");
      },
    ],
    [
      "after a write failed",
      "behind",
      () => {
        const database = start();
        write(database);
        const end = fillUp(database);
        expect(() => write(database, "b".repeat(5_000))).toThrow(/full/);
        end();
        database.close();
      },
    ],
    [
      "after a write failed and was repeated",
      "newest",
      () => {
        const database = start();
        const end = fillUp(database);
        expect(() => write(database, "b".repeat(5_000))).toThrow(/full/);
        end();
        write(database);
        database.close();
      },
    ],
    [
      "after the directory was moved to another",
      "unknown",
      () => {
        startAndWrite();
        copy("moved");
        directory = join(root, "moved");
      },
    ],
    [
      "without a directory for the boot",
      "unknown",
      () => {
        startAndWrite();
        bootDirectory = undefined;
      },
    ],
    [
      "with a directory for the boot that a copy would have",
      "unknown",
      () => {
        bootDirectory = join(directory, "run");
        startAndWrite();
      },
    ],
  ])("%s: %s", (_, standing, prepare) => {
    prepare();
    const database = start();
    expect(database.standingOf("reporting")).toBe(standing);
    expect(new ReporterStore(database).mayBeOutdated).toBe(standing === "behind");
  });

  it("after a boot: unknown", () => {
    startAndWrite();
    expect(start("boot-2").standingOf("reporting")).toBe("unknown");
  });
});

const markFile = () => readdirSync(bootDirectory!).find((name) => name.endsWith(".continuity"))!;

describe("a text that is kept for this boot", () => {
  const keep = (bootId: string, stateDirectory = directory) =>
    new BootDirectory(bootDirectory, stateDirectory, bootId);

  it("is read in the same boot and for the same state directory", () => {
    expect(keep("boot-1").read("eviction")).toBeUndefined();
    expect(keep("boot-1").write("eviction", "one\ntwo")).toBe(true);
    expect(keep("boot-1").read("eviction")).toBe("one\ntwo");
    expect(keep("boot-2").read("eviction")).toBeUndefined();
    expect(keep("boot-1", join(root, "other")).read("eviction")).toBeUndefined();
  });

  it("is not kept if its directory can't be made, or is within the state directory", () => {
    writeFileSync(join(root, "file"), "");
    bootDirectory = join(root, "file");
    expect(keep("boot-1").write("eviction", "one")).toBe(false);
    bootDirectory = directory;
    expect(keep("boot-1").write("eviction", "one")).toBe(false);
  });

  it("is not kept if only its beginning fits on the file system", () => {
    const text = "x".repeat(100_000);
    expect(keep("boot-1").write("eviction", text)).toBe(true);
    const program = `
      import { BootDirectory } from ${JSON.stringify(new URL("boot-directory.ts", import.meta.url))};
      const boot = new BootDirectory(${JSON.stringify(bootDirectory)}, ${JSON.stringify(directory)}, "boot-1");
      process.stdout.write(String(boot.write("eviction", "y".repeat(100_000))));`;
    // A limit of the size of files, in KiB, has the effect of a full file system: a write ends early, the next fails.
    const limited = `trap "" XFSZ; ulimit -f 8; exec "$0" --input-type=module -e "$1"`;
    const kept = execFileSync("bash", ["-c", limited, process.execPath, program], { encoding: "utf8" });
    expect(kept).toBe("false");
    expect(keep("boot-1").read("eviction")).toBeUndefined();
  });
});
