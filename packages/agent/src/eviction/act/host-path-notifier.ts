import { constants, type Dirent } from "node:fs";
import { lstat, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Clock,
  Counter,
  type Logger,
  messageOf,
  NodekeeperError,
  type Registry,
  type Runnable,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import type { Notification } from "../decide/decision.ts";
import type { PodReference } from "../decide/pods.ts";
import type { NodePods } from "../parts.ts";

/** The metrics of `HostPathNotifier`. */
export function createHostPathNotifierMetrics(registry: Registry) {
  return {
    notices: new Counter({
      name: "nodekeeper_eviction_host_path_notices_total",
      help: "Soft eviction notices written to hostPath files by result: written, failed.",
      labelNames: ["result"],
      registers: [registry],
    }),
  };
}

export interface HostPathNotifierOptions {
  /** The folder of the pods' folders; created if missing. Pods mount their own folder, never this one. */
  rootPath: string;
  pods: Pick<NodePods, "isSynced" | "list" | "onDeleted">;
  /** Whether every plugin is in dry run: then nothing is written or removed. */
  isDryRun: () => boolean;
  clock: Clock;
  log: Logger;
  metrics: ReturnType<typeof createHostPathNotifierMetrics>;
}

// Names of katalyst-core pkg/agent/evictionmanager/podnotifier/notifier.go
const SEPARATOR = "@@__@@";
const FILE_NAME = "soft_eviction_notify";
const SYNC_MS = 10_000;
const { O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * Notifies pods of soft evictions by a file, as katalyst's host-path notifier does.
 *
 * 1. A pod with the notification annotation has the folder `<name>@@__@@<namespace>` below the root path while it exists
 *    on this node; the pod mounts it as a hostPath volume.
 * 2. Each round that notifies the pod writes the current time to the file `soft_eviction_notify` in that folder.
 * 3. Only a regular file with one hard link is written, so that a pod can't redirect the write. (katalyst follows a
 *    symbolic link out of the folder, with the rights of the agent.)
 * 4. Other folders below the root path are not changed.
 */
export class HostPathNotifier implements Runnable {
  readonly name = "eviction-host-path-notifier";
  readonly #options: HostPathNotifierOptions;
  readonly #sleep = new WakeableSleep();
  /** Notifications to write, by UID. */
  readonly #due = new Map<string, Notification>();
  /** The last error by folder, so that it is logged once. */
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
      await this.#sleep.wait(clock, SYNC_MS, signal).catch(() => {});
    }
    stopListening();
  }

  async #sync(): Promise<void> {
    const { pods, rootPath } = this.#options;
    const present = pods.list().map(({ pod }) => pod);
    const entries = await this.#contained(rootPath, async () => {
      await mkdir(rootPath, { recursive: true, mode: 0o755 });
      return await readdir(rootPath, { withFileTypes: true });
    });
    if (entries === undefined) return;
    await this.#removeLeft(entries, new Set(present.map(folderOf)));
    for (const pod of present.filter((one) => one.softEvictNotify)) {
      await this.#contained(folderOf(pod), () => this.#makeFolder(pod));
    }
    const due = [...this.#due.values()];
    this.#due.clear();
    for (const notification of due) await this.#write(notification);
  }

  async #removeLeft(entries: readonly Dirent[], present: ReadonlySet<string>): Promise<void> {
    const { rootPath, log } = this.#options;
    for (const entry of entries) {
      const isPodFolder = entry.isDirectory() && entry.name.split(SEPARATOR).length === 2;
      if (!isPodFolder || present.has(entry.name)) continue;
      await this.#contained(entry.name, async () => {
        await rm(join(rootPath, entry.name), { recursive: true, force: true });
        log.info({ folder: entry.name }, "notification folder of a deleted pod removed");
      });
    }
    const known = new Set([...present, ...entries.map(({ name }) => name)]);
    for (const folder of this.#failing.keys()) if (!known.has(folder)) this.#failing.delete(folder);
  }

  async #makeFolder(pod: PodReference): Promise<void> {
    const path = join(this.#options.rootPath, folderOf(pod));
    const found = await lstat(path).catch(() => undefined);
    if (found === undefined) await mkdir(path, { mode: 0o755 });
    else if (!found.isDirectory()) throw new NodekeeperError("conflict", `${path} is not a folder`);
  }

  async #write(notification: Notification): Promise<void> {
    const { metrics, log } = this.#options;
    const written = await this.#contained(folderOf(notification), async () => {
      await this.#makeFolder(notification);
      await this.#writeFile(join(this.#options.rootPath, folderOf(notification), FILE_NAME));
      return true;
    });
    metrics.notices.inc({ result: written ? "written" : "failed" });
    const { namespace, name, plugin, reason } = notification;
    if (written) log.debug({ pod: { namespace, name }, plugin, reason }, "pod notified of a soft eviction");
  }

  // Rewrites the same file, because a pod may watch its inode. O_NONBLOCK: opening a FIFO must not block the agent.
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

  // An error in one pod's folder does not affect other pods.
  async #contained<T>(folder: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      this.#failing.delete(folder);
      return result;
    } catch (error) {
      const message = messageOf(error);
      if (this.#failing.get(folder) !== message) {
        this.#options.log.warn(
          { errorId: "NK1607", err: error, folder },
          "soft eviction notice can't be written",
        );
      }
      this.#failing.set(folder, message);
      return undefined;
    }
  }
}

function folderOf({ name, namespace }: PodReference): string {
  return `${name}${SEPARATOR}${namespace}`;
}

// Go's time.Time.String, which katalyst writes: "2026-11-21 04:24:22.52 +0000 UTC".
function goTime(at: number): string {
  return new Date(at).toISOString().replace("T", " ").replace("Z", " +0000 UTC");
}
