import { cpSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { EvictionStore, ReporterStore, StateDatabase } from "./index.ts";

let root: string;
const clock = new FakeClock();
/** What the agent leaves on its disks: the state directory, and the directory for the boot. */
let disks: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nk-boot-kill-"));
  disks = join(root, "disks");
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(root, { recursive: true });
});

let hasBootDirectory = true;
const open = (from: string, bootId: string) =>
  StateDatabase.open({
    ...{ clock, log: silentLogger, bootId },
    directory: join(from, "state"),
    bootDirectory: hasBootDirectory ? join(from, "run") : undefined,
  });

/** Leaves the disks as a power loss does: the file is open, and the boot's directory is gone. */
function loseThePower(): void {
  const database = open(join(root, "live"), "boot-1");
  new EvictionStore(database).save({ state: "{}", steps: [] }, { maxAgeMs: 1e12, maxBytes: 1e9 });
  const report = { plugin: "a", content: new Uint8Array([1]), updatedAt: 5, stoppedAt: null };
  new ReporterStore(database).saveContents([report], []);
  cpSync(join(root, "live", "state"), join(disks, "state"), { recursive: true });
  database.close();
}

function stampOf(directory: string): string {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  return names
    .map((name) => `${name} ${statSync(join(directory, name), { bigint: true }).mtimeNs}`)
    .join("; ");
}

/** Runs `work` and returns the disks as they are after each statement of SQLite that changes them. */
function copiesDuring(work: () => void): string[] {
  const copies: string[] = [];
  let last = "";
  const copy = () => {
    const to = join(root, `left-${copies.length}`);
    const stamp = stampOf(disks);
    if (stamp === last) return;
    last = stamp;
    cpSync(disks, to, { recursive: true, preserveTimestamps: true });
    copies.push(to);
  };
  const around = <This, Arguments extends unknown[], Result>(
    original: (this: This, ...values: Arguments) => Result,
  ) =>
    function (this: This, ...values: Arguments): Result {
      copy();
      const result = original.apply(this, values);
      copy();
      return result;
    };
  const { exec } = DatabaseSync.prototype;
  const { run } = StatementSync.prototype;
  vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(around(exec));
  vi.spyOn(StatementSync.prototype, "run").mockImplementation(around(run));
  work();
  vi.restoreAllMocks();
  return copies;
}

it.each([
  ["with", true],
  ["without", false],
])(
  "a kill at any point of the first start after a power loss, %s a directory for the boot, loses neither the gap nor that reports may be old",
  async (_name, has) => {
    hasBootDirectory = has;
    loseThePower();
    await clock.step(20_000);
    let first: StateDatabase | undefined;
    const copies = copiesDuring(() => {
      first = open(disks, "boot-2");
    });
    first?.close();
    expect(copies.length).toBeGreaterThan(1);
    const left = copies.map((copy) => {
      // In the same place, since the files for the boot belong to the path of the state directory.
      rmSync(disks, { recursive: true });
      cpSync(copy, disks, { recursive: true, preserveTimestamps: true });
      using database = open(disks, "boot-2");
      const whys = database.coverage.get().gaps.map(({ why }) => why);
      return { whys, mayBeOutdated: new ReporterStore(database).mayBeOutdated };
    });
    const why = expect.stringContaining("the machine went down");
    expect(left).toEqual(copies.map(() => ({ whys: [why], mayBeOutdated: true })));
  },
);

it("reports that were written after a power loss are not outdated at the next start", () => {
  hasBootDirectory = false;
  loseThePower();
  using first = open(disks, "boot-2");
  new ReporterStore(first).saveContents([], ["a"]);
  first.close();
  using second = open(disks, "boot-2");
  expect(new ReporterStore(second).mayBeOutdated).toBe(false);
});
