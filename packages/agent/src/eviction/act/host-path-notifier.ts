import { constants, type Dirent } from "node:fs";
import { lstat, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Notification, PodReference } from "@nodekeeper/api/decide";
import { EvictionNoticeNotWritten } from "@nodekeeper/api/errors";
import { messageOf, NodekeeperError, type Runnable, WakeableSleep } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { NodePods } from "../parts.ts";

export interface HostPathNotifierOptions extends Pick<EvictionContext, "clock" | "log" | "metrics"> {
  /** The parent of the pods' directories; created if missing. Pods mount only their own directory. */
  rootPath: string;
  pods: Pick<NodePods, "isSynced" | "list" | "onDeleted">;
  /** Whether every plugin is in dry run. If so, nothing is written or removed. */
  isDryRun: () => boolean;
}

// Names from katalyst-core pkg/agent/evictionmanager/podnotifier/notifier.go
const SEPARATOR = "@@__@@";
const FILE_NAME = "soft_eviction_notify";
const SYNC_MS = 10_000;
const { O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * Notifies pods of soft evictions through a file, like katalyst's host-path notifier.
 *
 * 1. A pod with the notification annotation has the directory `<name>@@__@@<namespace>` below the root path while it
 *    exists on this node. The pod mounts it as a hostPath volume.
 * 2. Each round that notifies the pod writes the current time to the file `soft_eviction_notify` in that directory. A
 *    failed write is not retried, because the next round that notifies the pod writes the file again.
 * 3. Only a regular file with one hard link is written, so that a pod can't redirect the write. (katalyst follows a
 *    symbolic link out of the directory, with the agent's permissions.)
 * 4. Other directories below the root path are not changed.
 */
export class HostPathNotifier implements Runnable {
  readonly name = "eviction-host-path-notifier";
  readonly #options: HostPathNotifierOptions;
  readonly #sleep = new WakeableSleep();
  /** Notifications to write, by pod UID. */
  readonly #due = new Map<string, Notification>();
  /** The last error by directory, to log it only once. */
  readonly #failing = new Map<string, string>();

  constructor(options: HostPathNotifierOptions) {
    this.#options = options;
  }

  /** Queues a round's notifications. */
  notify(notifications: readonly Notification[]): void {
    for (const notification of notifications) this.#due.set(notification.uid, notification);
    if (notifications.length > 0) this.#sleep.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, pods } = this.#options;
    const stopListening = pods.onDeleted(() => this.#sleep.wake());
    while (!signal.aborted) {
      this.#sleep.clear();
      if (pods.isSynced && !this.#options.isDryRun()) await this.#sync();
      else this.#due.clear();
      await this.#sleep.waitOrAbort(clock, SYNC_MS, signal);
    }
    stopListening();
  }

  async #sync(): Promise<void> {
    const { pods, rootPath } = this.#options;
    const present = pods.list().map(({ pod }) => pod);
    const asking = present.filter(({ softEvictNotify }) => softEvictNotify);
    const due = asking.flatMap(({ uid }) => this.#due.get(uid) ?? []);
    this.#due.clear();
    const entries = await this.#contained(rootPath, async () => {
      await mkdir(rootPath, { recursive: true, mode: 0o755 });
      return await readdir(rootPath, { withFileTypes: true });
    });
    if (entries === undefined) {
      this.#options.metrics.notices.inc({ result: "failed" }, due.length);
      return;
    }
    await this.#removeLeft(entries, new Set(present.map(directoryOf)));
    for (const pod of asking) {
      await this.#contained(directoryOf(pod), () => this.#makeDirectory(pod));
    }
    for (const notification of due) await this.#write(notification);
  }

  async #removeLeft(entries: readonly Dirent[], present: ReadonlySet<string>): Promise<void> {
    const { rootPath, log } = this.#options;
    for (const entry of entries) {
      const isPodDirectory = entry.isDirectory() && entry.name.split(SEPARATOR).length === 2;
      if (!isPodDirectory || present.has(entry.name)) continue;
      await this.#contained(entry.name, async () => {
        await rm(join(rootPath, entry.name), { recursive: true, force: true });
        log.info({ directory: entry.name }, "notification directory of a deleted pod removed");
      });
    }
    const known = new Set([...present, ...entries.map(({ name }) => name)]);
    for (const directory of this.#failing.keys()) if (!known.has(directory)) this.#failing.delete(directory);
  }

  async #makeDirectory(pod: PodReference): Promise<void> {
    const path = join(this.#options.rootPath, directoryOf(pod));
    const found = await lstat(path).catch(() => undefined);
    if (found === undefined) await mkdir(path, { mode: 0o755 });
    else if (!found.isDirectory()) throw new NodekeeperError("conflict", `${path} is not a directory`);
  }

  async #write(notification: Notification): Promise<void> {
    const { metrics, log } = this.#options;
    const written = await this.#contained(directoryOf(notification), async () => {
      await this.#makeDirectory(notification);
      await this.#writeFile(join(this.#options.rootPath, directoryOf(notification), FILE_NAME));
      return true;
    });
    metrics.notices.inc({ result: written ? "written" : "failed" });
    const { namespace, name, plugin, reason } = notification;
    if (written) log.debug({ pod: { namespace, name }, plugin, reason }, "pod notified of a soft eviction");
  }

  // Rewrites the file in place, because a pod may watch its inode. O_NONBLOCK: opening a FIFO must not block the agent.
  async #writeFile(path: string): Promise<void> {
    const file = await open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
    try {
      const found = await file.stat();
      if (!found.isFile() || found.nlink !== 1) {
        throw new NodekeeperError("conflict", `${path} is not a regular file with one name`);
      }
      await file.truncate(0);
      await file.write(goTime(this.#options.clock.now()), 0);
    } finally {
      await file.close();
    }
  }

  // An error in one pod's directory does not affect other pods.
  async #contained<T>(directory: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      this.#failing.delete(directory);
      return result;
    } catch (error) {
      const message = messageOf(error);
      if (this.#failing.get(directory) !== message) {
        this.#options.log.warn(
          { errorId: EvictionNoticeNotWritten.id, err: error, directory },
          "soft eviction notice can't be written",
        );
      }
      this.#failing.set(directory, message);
      return undefined;
    }
  }
}

function directoryOf({ name, namespace }: PodReference): string {
  return `${name}${SEPARATOR}${namespace}`;
}

// The format of Go's time.Time.String, which katalyst writes: "2026-11-21 04:24:22.52 +0000 UTC".
function goTime(at: number): string {
  return new Date(at).toISOString().replace("T", " ").replace("Z", " +0000 UTC");
}
