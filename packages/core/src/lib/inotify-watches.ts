import { type FSWatcher, watch } from "node:fs";
import { DirectoryNotWatched, messageOf } from "@nodekeeper/api/errors";
import type { HealthCheck } from "./health.ts";
import type { Logger } from "./log.ts";

/** Called with the name of a file that was created, removed or replaced (`rename`), or changed. */
export type OnFileEvent = (event: "rename" | "change", file: string | null) => void;

/**
 * Watches directories and tracks those that could not be watched because the node's limit of inotify instances or
 * watches is reached. Missing directories are not counted: their owners report them. Owners also check periodically and
 * start the watch again.
 */
export class InotifyWatches {
  readonly #log: Logger;
  readonly #watch: typeof watch;
  readonly #unwatched = new Map<string, string>();

  /** @param watchDirectory for tests; may fail as inotify does */
  constructor(log: Logger, watchDirectory: typeof watch = watch) {
    this.#log = log;
    this.#watch = watchDirectory;
  }

  /** Number of directories whose last watch could not be started. */
  get unwatched(): number {
    return this.#unwatched.size;
  }

  /**
   * Watches a directory. Returns undefined if it cannot be watched.
   * @param onBroken called if the watch fails later, after it was closed
   */
  start(path: string, onEvent: OnFileEvent, onBroken: () => void = () => {}): FSWatcher | undefined {
    try {
      const watcher = this.#watch(path, { persistent: false }, onEvent);
      watcher.on("error", (error) => {
        watcher.close();
        this.#failed(path, error);
        onBroken();
      });
      this.#unwatched.delete(path);
      return watcher;
    } catch (error) {
      this.#failed(path, error);
      return undefined;
    }
  }

  /** Stops counting a directory that is no longer needed. */
  forget(path: string): void {
    this.#unwatched.delete(path);
  }

  /** Returns a check that always passes. Its warning names an unwatched directory. */
  healthCheck(): HealthCheck {
    const check = () => {
      const [first] = this.#unwatched;
      if (first === undefined) return { ok: true, message: "all directories are watched" };
      const [path, reason] = first;
      const more = this.#unwatched.size > 1 ? `, and ${this.#unwatched.size - 1} more` : "";
      const message = `${path} is not watched (${reason})${more}; changes are found by periodic checks`;
      return { ok: true, message, warning: message, errorId: DirectoryNotWatched.id };
    };
    return { name: "DirectoryWatchesReady", kind: "ready", check };
  }

  #failed(path: string, error: unknown): void {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      this.#unwatched.delete(path);
      return;
    }
    // Logged once until all directories are watched again.
    if (this.#unwatched.size === 0) {
      const fields = { errorId: DirectoryNotWatched.id, directory: path, err: error };
      this.#log.warn(fields, "failed to watch directory, relying on periodic checks");
    }
    this.#unwatched.set(path, messageOf(error));
  }
}
