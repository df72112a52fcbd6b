import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { type Damage, damageOf } from "./damage.ts";
import type { Schema, Table } from "./schema.ts";
import { isCorruption } from "./sqlite-errors.ts";

type Row = Record<string, unknown>;

const PLACE = "its_row_id";
// Maximum number of failed reads per table. A damaged page causes a few dozen.
const MOST_FAILURES = 20_000;
const LARGEST_ROW_ID = 2n ** 53n;

/**
 * Copies the readable rows of a damaged database to an empty one, table by table. Returns the data that could
 * not be read, or undefined if nothing could be read.
 */
export function salvage(from: DatabaseSync, to: DatabaseSync, schema: Schema): Damage[] | undefined {
  const damage: Damage[] = [];
  let copied = 0;
  for (const table of schema.tables) {
    const copy = new TableCopy(from, to, table);
    copied += copy.run();
    if (copy.lost !== undefined) damage.push(damageOf(table.name, copy.lost));
  }
  if (copied === 0) return undefined;
  copySequences(from, to);
  return damage;
}

class TableCopy {
  lost: "the table" | "rows on damaged pages" | undefined;
  readonly #from: DatabaseSync;
  readonly #to: DatabaseSync;
  readonly #table: Table;
  #insert!: StatementSync;
  #copied = 0;
  #failures = 0;

  constructor(from: DatabaseSync, to: DatabaseSync, table: Table) {
    this.#from = from;
    this.#to = to;
    this.#table = table;
  }

  /** Copies the table. Returns the number of rows. */
  run(): number {
    const { name, columns, hasRowId } = this.#table;
    try {
      const targets = [...(hasRowId ? ["rowid"] : []), ...columns];
      const places = targets.map(() => "?").join(", ");
      this.#insert = this.#to.prepare(
        `INSERT OR IGNORE INTO ${name} (${targets.join(", ")}) VALUES (${places})`,
      );
      if (hasRowId) this.#copyAll();
      else this.#copyFromBothEnds();
    } catch {
      this.lost = this.#copied === 0 ? "the table" : "rows on damaged pages";
    }
    return this.#copied;
  }

  // Skips a damaged page: continues at the next readable row, and copies the rows in between backwards from
  // there.
  #copyAll(): void {
    for (let from = 0n; from <= LARGEST_ROW_ID; ) {
      const failedAt = this.#copySpan(from, LARGEST_ROW_ID, "ASC");
      if (failedAt === undefined) return;
      const next = this.#nextReadable(failedAt);
      this.#copySpan(failedAt, next - 1n, "DESC");
      from = next;
    }
  }

  // Returns the first row ID that was not read. Undefined if all were read.
  #copySpan(first: bigint, last: bigint, order: "ASC" | "DESC"): bigint | undefined {
    let next = first;
    try {
      const rows = this.#select(`WHERE rowid BETWEEN ? AND ? ORDER BY rowid ${order}`).iterate(first, last);
      for (const row of rows) {
        next = (row[PLACE] as bigint) + 1n;
        this.#copy(row);
      }
      return undefined;
    } catch (error) {
      this.#failed(error);
      return next;
    }
  }

  #nextReadable(after: bigint): bigint {
    for (let step = 1n; after + step <= LARGEST_ROW_ID; step *= 2n) {
      try {
        this.#select("WHERE rowid >= ? ORDER BY rowid LIMIT 1").get(after + step);
        return after + step;
      } catch (error) {
        this.#failed(error);
      }
    }
    return LARGEST_ROW_ID + 1n;
  }

  #copyFromBothEnds(): void {
    const { columns } = this.#table;
    const key = columns.join(", ");
    for (const order of [key, columns.map((column) => `${column} DESC`).join(", ")]) {
      try {
        for (const row of this.#select(`ORDER BY ${order}`).iterate()) this.#copy(row);
        return;
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  #select(rest: string): StatementSync {
    const { name, columns, hasRowId } = this.#table;
    // A column may be an alias of the row ID.
    const results = [...(hasRowId ? [`rowid AS ${PLACE}`] : []), ...columns];
    const statement = this.#from.prepare(`SELECT ${results.join(", ")} FROM ${name} ${rest}`);
    statement.setReadBigInts(true);
    return statement;
  }

  #copy(row: Row): void {
    try {
      const { changes } = this.#insert.run(...(Object.values(row) as SQLInputValue[]));
      this.#copied += Number(changes);
    } catch {
      // The value has a wrong type, as on damaged pages.
      this.lost = "rows on damaged pages";
    }
  }

  #failed(error: unknown): void {
    this.lost = "rows on damaged pages";
    if (!isCorruption(error) || ++this.#failures > MOST_FAILURES) throw error;
  }
}

// Preserves sequences, so that IDs are not reused, including those of lost rows.
function copySequences(from: DatabaseSync, to: DatabaseSync): void {
  try {
    const statement = from.prepare("SELECT name, seq FROM sqlite_sequence");
    statement.setReadBigInts(true);
    const set = to.prepare("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1");
    // Of a table of which no row was copied.
    const add = to.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)");
    for (const { name, seq } of statement.all()) {
      const values = [name as string, seq as bigint] as const;
      if (set.run(...values).changes === 0) add.run(...values);
    }
  } catch {}
}
