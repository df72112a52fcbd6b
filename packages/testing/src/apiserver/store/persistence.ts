import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf, NodekeeperError, parseExactly } from "@nodekeeper/core/lib";

const FORMAT = 1;

/** Objects of a development cluster in an SQLite file. Each change is a transaction that includes its revision. */
export class Persistence {
  readonly #database: DatabaseSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #setRevision: StatementSync;

  /** Opens or creates `dev-cluster.db` in the directory. Throws `corrupt` if the file cannot be read. */
  constructor(directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, "dev-cluster.db");
    try {
      this.#database = new DatabaseSync(path);
      this.#prepareTables();
    } catch (error) {
      throw new NodekeeperError(
        "corrupt",
        `${path}: can't be read as a dev cluster's data: ${messageOf(error)}`,
        { cause: error },
      );
    }
    this.#put = this.#database.prepare(
      "INSERT INTO objects (storage, key, object) VALUES (?, ?, ?) ON CONFLICT (storage, key) DO UPDATE SET object = excluded.object",
    );
    this.#remove = this.#database.prepare("DELETE FROM objects WHERE storage = ? AND key = ?");
    this.#setRevision = this.#database.prepare("UPDATE cluster SET revision = ?");
  }

  #prepareTables(): void {
    this.#database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS cluster (format INTEGER NOT NULL, revision INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS objects (storage TEXT, key TEXT, object TEXT NOT NULL, PRIMARY KEY (storage, key)) WITHOUT ROWID;
      INSERT INTO cluster SELECT ${FORMAT}, 0 WHERE NOT EXISTS (SELECT 1 FROM cluster);
    `);
    const row = this.#database.prepare("SELECT format FROM cluster").get() as { format: number };
    if (row.format !== FORMAT) throw new Error(`format ${row.format} is not ${FORMAT}`);
  }

  /** Returns the last revision and all objects. */
  load(): { revision: number; objects: { storage: string; object: KubeObject }[] } {
    const { revision } = this.#database.prepare("SELECT revision FROM cluster").get() as { revision: number };
    const rows = this.#database.prepare("SELECT storage, object FROM objects").all() as {
      storage: string;
      object: string;
    }[];
    return {
      revision,
      objects: rows.map(({ storage, object }) => ({ storage, object: parseExactly(object) as KubeObject })),
    };
  }

  /** Writes a change. If `object` is undefined, removes the stored object. */
  write(storage: string, key: string, object: KubeObject | undefined, revision: number): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      if (object) this.#put.run(storage, key, JSON.stringify(object));
      else this.#remove.run(storage, key);
      this.#setRevision.run(revision);
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.#database.close();
  }
}
