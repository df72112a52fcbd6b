import { type FSWatcher, watch } from "node:fs";
import { type Logger, messageOf } from "@nodekeeper/core/lib";

interface Watch {
  identity: string;
  watcher: FSWatcher;
}

/**
 * Keeps one inotify watch for each directory. Node's recursive watch on Linux adds a watch for every file and stats the
 * whole tree; a watch for each directory costs one handle regardless of its entries.
 */
export class DirectoryWatches implements Disposable {
  readonly #log: Logger;
  readonly #onChange: () => void;
  readonly #watch: typeof watch;
  readonly #watches = new Map<string, Watch>();
  #seen = new Set<string>();
  #trouble: string | undefined;

  /** @param watchDirectory for tests: may fail as inotify does */
  constructor(log: Logger, onChange: () => void, watchDirectory: typeof watch = watch) {
    this.#log = log;
    this.#onChange = onChange;
    this.#watch = watchDirectory;
  }

  /** Why a directory is not watched, such as inotify limits; changes in it are found by the periodic rescan. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Call for each directory of a walk before reading it. A directory re-created at the same path gets a new watch. */
  keep(path: string, identity: string): void {
    this.#seen.add(path);
    const present = this.#watches.get(path);
    if (present?.identity === identity) return;
    present?.watcher.close();
    this.#watches.delete(path);
    this.#start(path, identity);
  }

  /** Call after a walk: closes the watches of directories that the walk did not find. */
  forgetOthers(): void {
    for (const [path, { watcher }] of this.#watches) {
      if (this.#seen.has(path)) continue;
      watcher.close();
      this.#watches.delete(path);
    }
    this.#seen = new Set();
    if (this.#watches.size > 0 && this.#missing === 0) this.#trouble = undefined;
    this.#missing = 0;
  }

  [Symbol.dispose](): void {
    for (const { watcher } of this.#watches.values()) watcher.close();
    this.#watches.clear();
  }

  #missing = 0;

  #start(path: string, identity: string): void {
    try {
      const watcher = this.#watch(path, { persistent: false }, (event, file) => {
        // "change" is a write or a chmod; "rename" is a created, removed or moved entry.
        if (event === "rename" && !file?.startsWith(".")) this.#onChange();
      });
      watcher.on("error", (error) => {
        this.#fail(path, error);
        watcher.close();
        if (this.#watches.get(path)?.watcher === watcher) this.#watches.delete(path);
      });
      this.#watches.set(path, { identity, watcher });
    } catch (error) {
      this.#missing++;
      this.#fail(path, error);
    }
  }

  #fail(path: string, error: unknown): void {
    if (this.#trouble === undefined) {
      this.#log.warn(
        { errorId: "NK1006", directory: path, err: error },
        "failed to watch directory, relying on the periodic rescan",
      );
    }
    this.#trouble = `${path} is not watched (${messageOf(error)}); changes are detected by the periodic rescan`;
  }
}
