import { EventEmitter } from "node:events";
import type { watch } from "node:fs";
import { InotifyWatches, silentLogger } from "@nodekeeper/core/lib";
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

/** Lets every directory be watched. Returns the watchers, in the order in which they are made. */
function recordWatchers(): readonly FakeWatcher[] {
  const made: FakeWatcher[] = [];
  fake.watch = () => {
    const watcher = new FakeWatcher();
    made.push(watcher);
    return watcher;
  };
  return made;
}

const exhausted = Object.assign(new Error("ENOSPC: System limit for number of file watchers reached"), {
  code: "ENOSPC",
});

it("logs once that inotify is exhausted, and once that it works again", () => {
  const warn = vi.spyOn(silentLogger, "warn");
  fake.watch = () => {
    throw exhausted;
  };
  const inotify = new InotifyWatches(silentLogger, watchDirectory);
  using watches = new DirectoryWatches(inotify, () => {});
  for (let round = 0; round < 3; round++) {
    watches.keep("/a", "1");
    watches.forgetOthers();
  }
  expect(warn).toHaveBeenCalledTimes(1);
  expect(inotify.healthCheck().check()).toMatchObject({
    ok: true,
    warning: expect.stringContaining("/a is not watched (ENOSPC"),
  });
  fake.watch = () => new FakeWatcher();
  watches.keep("/a", "1");
  watches.forgetOthers();
  expect(inotify.unwatched).toBe(0);
});

it("a directory that was deleted is not one that can't be watched", () => {
  fake.watch = (path) => {
    if (path === "/deleted") throw exhausted;
    return new FakeWatcher();
  };
  const inotify = new InotifyWatches(silentLogger, watchDirectory);
  using watches = new DirectoryWatches(inotify, () => {});
  watches.keep("/a", "1");
  watches.keep("/deleted", "1");
  watches.forgetOthers();
  expect(inotify.unwatched).toBe(1);
  watches.keep("/a", "1");
  watches.forgetOthers();
  expect(inotify.unwatched).toBe(0);
});

it("adds a new watch for a re-created directory, drops that of a deleted one, and closes all at the end", () => {
  const made = recordWatchers();
  const watches = new DirectoryWatches(new InotifyWatches(silentLogger, watchDirectory), () => {});
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
  const made = recordWatchers();
  const inotify = new InotifyWatches(silentLogger, watchDirectory);
  using watches = new DirectoryWatches(inotify, () => {});
  watches.keep("/a", "1");
  watches.forgetOthers();
  made[0]?.emit("error", exhausted);
  expect(inotify.unwatched).toBe(1);
  watches.keep("/a", "1");
  watches.forgetOthers();
  expect(made).toHaveLength(2);
  expect(inotify.unwatched).toBe(0);
});
