import { EventEmitter } from "node:events";
import type { watch } from "node:fs";
import { silentLogger } from "@nodekeeper/core/lib";
import { expect, it, vi } from "vitest";
import { DirectoryWatches } from "./directory-watches.ts";

const fake = { watch: (_path: string): unknown => undefined };
const watchDirectory = ((path: string) => fake.watch(path)) as typeof watch;

class FakeWatcher extends EventEmitter {
  closed = false;
  close(): void {
    this.closed = true;
  }
}

const exhausted = Object.assign(new Error("ENOSPC: System limit for number of file watchers reached"), {
  code: "ENOSPC",
});

it("logs once that inotify is exhausted, and once that it works again", () => {
  const warn = vi.spyOn(silentLogger, "warn");
  fake.watch = () => {
    throw exhausted;
  };
  using watches = new DirectoryWatches(silentLogger, () => {}, watchDirectory);
  for (let round = 0; round < 3; round++) {
    watches.keep("/a", "1");
    watches.forgetOthers();
  }
  expect(warn).toHaveBeenCalledTimes(1);
  expect(watches.trouble).toContain("/a is not watched (ENOSPC");
  fake.watch = () => new FakeWatcher();
  watches.keep("/a", "1");
  watches.forgetOthers();
  expect(watches.trouble).toBeUndefined();
});

it("adds a new watch for a re-created directory, drops that of a deleted one, and closes all at the end", () => {
  const made: FakeWatcher[] = [];
  fake.watch = () => {
    const watcher = new FakeWatcher();
    made.push(watcher);
    return watcher;
  };
  const watches = new DirectoryWatches(silentLogger, () => {}, watchDirectory);
  watches.keep("/a", "1");
  watches.keep("/b", "1");
  watches.forgetOthers();
  watches.keep("/a", "2");
  watches.forgetOthers();
  expect(made.map((watcher) => watcher.closed)).toEqual([true, true, false]);
  watches[Symbol.dispose]();
  expect(made.every((watcher) => watcher.closed)).toBe(true);
});

it("a watch that breaks is made again at the next walk", () => {
  const made: FakeWatcher[] = [];
  fake.watch = () => {
    const watcher = new FakeWatcher();
    made.push(watcher);
    return watcher;
  };
  using watches = new DirectoryWatches(silentLogger, () => {}, watchDirectory);
  watches.keep("/a", "1");
  watches.forgetOthers();
  made[0]?.emit("error", exhausted);
  expect(watches.trouble).toContain("/a is not watched");
  watches.keep("/a", "1");
  watches.forgetOthers();
  expect(made).toHaveLength(2);
  expect(watches.trouble).toBeUndefined();
});
