import type { FSWatcher } from "node:fs";
import type { InotifyWatches } from "@nodekeeper/core/lib";

interface Watch {
  identity: string;
  watcher: FSWatcher;
}

/**
 * Maintains one inotify watch per directory. Node's recursive watch on Linux adds a watch for every file and
 * stats the whole tree. A watch per directory costs one handle regardless of the number of entries.
 */
export class DirectoryWatches implements Disposable {
  readonly #inotify: InotifyWatches;
  readonly #onChange: () => void;
  readonly #watches = new Map<string, Watch>();
  #seen = new Set<string>();
  #seenBefore: ReadonlySet<string> = new Set();

  constructor(inotify: InotifyWatches, onChange: () => void) {
    this.#inotify = inotify;
    this.#onChange = onChange;
  }

  /**
   * Must be called for each directory of a walk before reading it. A directory that was re-created at the
   * same path gets a new watch.
   */
  keep(path: string, identity: string): void {
    this.#seen.add(path);
    const present = this.#watches.get(path);
    if (present?.identity === identity) return;
    present?.watcher.close();
    this.#watches.delete(path);
    this.#start(path, identity);
  }

  /** Must be called after a walk. Closes the watches of directories that the walk did not find. */
  forgetOthers(): void {
    for (const [path, { watcher }] of this.#watches) {
      if (this.#seen.has(path)) continue;
      watcher.close();
      this.#watches.delete(path);
    }
    for (const path of this.#seenBefore) if (!this.#seen.has(path)) this.#inotify.forget(path);
    this.#seenBefore = this.#seen;
    this.#seen = new Set();
  }

  [Symbol.dispose](): void {
    for (const { watcher } of this.#watches.values()) watcher.close();
    this.#watches.clear();
  }

  #start(path: string, identity: string): void {
    const watcher = this.#inotify.start(
      path,
      (event, file) => {
        // "change" is a write or chmod; "rename" is a created, removed or moved entry.
        if (event === "rename" && !file?.startsWith(".")) this.#onChange();
      },
      () => {
        if (this.#watches.get(path)?.watcher === watcher) this.#watches.delete(path);
      },
    );
    if (watcher) this.#watches.set(path, { identity, watcher });
  }
}
