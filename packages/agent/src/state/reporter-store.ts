import type { BootTime } from "@nodekeeper/core/lib";
import { Store } from "./store.ts";

/** The last report of a reporter plugin. Times are in milliseconds since the epoch. */
export interface StoredContent {
  plugin: string;
  /** The plugin's message as received. */
  content: Uint8Array;
  updatedAt: number;
  /** When the plugin disconnected. Null while it was connected. */
  stoppedAt: number | null;
  /** Boot ID and uptime when it disconnected. Undefined while it was connected, or if unknown. */
  stoppedIn?: BootTime | undefined;
}

type ContentRow = Omit<StoredContent, "stoppedIn"> & { id: string | null; uptimeMs: number | null };

/**
 * Why content is quarantined: the API server rejects this part of the object, or the object as a whole is too
 * large.
 */
export type LastGoodPart = "main" | "status" | "object";

/** The last known good content of a plugin, which is published instead of newer content in quarantine. */
export interface LastGoodContent {
  object: string;
  /** A `LastGoodPart`. Later versions may store others. */
  part: string;
  plugin: string;
  /** Encoded as a message of the plugin. */
  content: Uint8Array;
}

/**
 * The reporting checkpoint: the last report of each plugin, and the last known good content of quarantined
 * plugins.
 */
export class ReporterStore extends Store {
  /**
   * Whether the published state may be newer than the stored content: the content could not be written, or it
   * comes from an older copy of the state directory.
   */
  readonly mayBeOutdated =
    this.database.mayHaveLostCommits ||
    this.database.standingOf("reporting") === "behind" ||
    this.database.first<{ found: number }>("SELECT reports_outdated AS found FROM boot")?.found === 1;
  // The first transaction deletes it, so that no later start takes it for what was published last.
  #hasOutdatedLastGood = this.mayBeOutdated;

  contents(): StoredContent[] {
    const rows = this.database.all<ContentRow>(
      `SELECT plugin, content, updated_at AS updatedAt, stopped_at AS stoppedAt, stopped_boot AS id,
         stopped_uptime AS uptimeMs
       FROM reporter_content ORDER BY plugin`,
    );
    return rows.map(({ id, uptimeMs, ...row }) => ({
      ...row,
      stoppedIn: id !== null && uptimeMs !== null ? { id, uptimeMs } : undefined,
    }));
  }

  /**
   * Writes and deletes content in one transaction. Throws if the disk is full; nothing is changed then.
   * @param isLast whether no changed content remains to be written
   */
  saveContents(changed: readonly StoredContent[], dropped: readonly string[], isLast = true): void {
    const save = () => {
      this.#deleteOutdatedLastGood();
      for (const { plugin, content, updatedAt, stoppedAt, stoppedIn } of changed) {
        const boot = { stopped_boot: stoppedIn?.id ?? null, stopped_uptime: stoppedIn?.uptimeMs ?? null };
        this.database.insert(
          "reporter_content",
          { plugin, content, updated_at: updatedAt, stopped_at: stoppedAt, ...boot },
          "REPLACE",
        );
      }
      for (const plugin of dropped)
        this.database.run("DELETE FROM reporter_content WHERE plugin = ?", plugin);
      if (this.mayBeOutdated && isLast) this.database.run("UPDATE boot SET reports_outdated = 0");
    };
    this.database.transaction(save, "reporting", isLast);
    this.#hasOutdatedLastGood = false;
  }

  /** Returns none if `mayBeOutdated`: what is published serves instead. */
  lastGood(): LastGoodContent[] {
    if (this.#hasOutdatedLastGood) return [];
    return this.database.all(
      "SELECT object, part, plugin, content FROM stand_in ORDER BY object, part, plugin",
    );
  }

  /**
   * Replaces the last known good content of one part in one transaction. Throws if the disk is full; nothing
   * is changed then.
   */
  saveLastGood(object: string, part: LastGoodPart, contents: ReadonlyMap<string, Uint8Array>): void {
    this.database.transaction(() => {
      this.#deleteOutdatedLastGood();
      this.database.run("DELETE FROM stand_in WHERE object = ? AND part = ?", object, part);
      for (const [plugin, content] of contents)
        this.database.insert("stand_in", { object, part, plugin, content });
    });
    this.#hasOutdatedLastGood = false;
  }

  #deleteOutdatedLastGood(): void {
    if (this.#hasOutdatedLastGood) this.database.run("DELETE FROM stand_in");
  }
}
