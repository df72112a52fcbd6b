import type { StatementSync } from "node:sqlite";
import type { StateDatabase } from "./database.ts";

/** The last report of a reporter plugin. Times are wall milliseconds. */
export interface StoredContent {
  plugin: string;
  /** The plugin's message as it was received. */
  content: Uint8Array;
  updatedAt: number;
  /** When the plugin disconnected; undefined while it was connected. */
  stoppedAt: number | undefined;
}

/** Why a content is quarantined: the API server rejects this part of the object, or the object as a whole is too large. */
export type LastGoodPart = "main" | "status" | "object";

/** The last known good content of a plugin, which is published instead of newer content that is quarantined. */
export interface LastGoodContent {
  object: string;
  /** A `LastGoodPart`; later versions may store others. */
  part: string;
  plugin: string;
  /** As a plugin's message. */
  content: Uint8Array;
}

/** The reporting checkpoint: the last report of each plugin, and the last known good content of quarantined ones. */
export class ReporterStore {
  readonly #database: StateDatabase;
  readonly #save: StatementSync;
  readonly #drop: StatementSync;

  constructor(database: StateDatabase) {
    this.#database = database;
    const { connection } = database;
    this.#save = connection.prepare(
      `INSERT INTO reporter_content (plugin, content, updated_at, stopped_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (plugin) DO UPDATE
       SET content = excluded.content, updated_at = excluded.updated_at, stopped_at = excluded.stopped_at`,
    );
    this.#drop = connection.prepare("DELETE FROM reporter_content WHERE plugin = ?");
  }

  contents(): StoredContent[] {
    const rows = this.#database.connection
      .prepare("SELECT plugin, content, updated_at, stopped_at FROM reporter_content ORDER BY plugin")
      .all();
    return rows.map((row) => ({
      plugin: row.plugin as string,
      content: row.content as Uint8Array,
      updatedAt: row.updated_at as number,
      stoppedAt: (row.stopped_at as number | null) ?? undefined,
    }));
  }

  /** Writes and deletes contents in one transaction. Throws when the disk is full; nothing is changed then. */
  saveContents(changed: readonly StoredContent[], dropped: readonly string[]): void {
    this.#database.transaction(() => {
      for (const { plugin, content, updatedAt, stoppedAt } of changed) {
        this.#save.run(plugin, content, updatedAt, stoppedAt ?? null);
      }
      for (const plugin of dropped) this.#drop.run(plugin);
    });
  }

  lastGood(): LastGoodContent[] {
    const rows = this.#database.connection
      .prepare("SELECT object, part, plugin, content FROM stand_in ORDER BY object, part, plugin")
      .all();
    return rows.map((row) => ({
      object: row.object as string,
      part: row.part as string,
      plugin: row.plugin as string,
      content: row.content as Uint8Array,
    }));
  }

  /** Replaces the last known good contents of one part in one transaction. Throws when the disk is full; nothing is changed then. */
  saveLastGood(object: string, part: LastGoodPart, contents: ReadonlyMap<string, Uint8Array>): void {
    const { connection } = this.#database;
    this.#database.transaction(() => {
      connection.prepare("DELETE FROM stand_in WHERE object = ? AND part = ?").run(object, part);
      const add = connection.prepare(
        "INSERT INTO stand_in (object, part, plugin, content) VALUES (?, ?, ?, ?)",
      );
      for (const [plugin, content] of contents) add.run(object, part, plugin, content);
    });
  }
}
