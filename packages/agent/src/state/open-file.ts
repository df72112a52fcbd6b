import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StateDamaged } from "@nodekeeper/api/errors";
import { messageOf } from "@nodekeeper/core/lib";
import { type Damage, damageOf, deleteDamagedRows } from "./damage.ts";
import { addColumns, addedTables, createSchema, isNew } from "./definitions.ts";
import { salvage } from "./salvage.ts";
import { Schema } from "./schema.ts";
import { isCorruption, isSqlError } from "./sqlite-errors.ts";
import { withLog } from "./wal.ts";

/** An open database with the current schema. */
export interface OpenedDatabase {
  connection: DatabaseSync;
  /** Whether the previous agent did not close the file. */
  wasOpen: boolean;
  /** Whether commits may be missing. */
  mayHaveLostCommits: boolean;
  /** Data that could not be read and is skipped, by table. */
  damage: readonly Damage[];
}

/**
 * Opens or creates the file. Deletes rows that cannot be read, and creates missing tables. Throws `corrupt` if pages
 * are damaged: see `salvageFrom`.
 */
export function openFile(path: string, bootId: string): OpenedDatabase {
  keepPrivate(path);
  // SQLite removes this file when the database is closed.
  const wasOpen = existsSync(`${path}-wal`);
  const connection = new DatabaseSync(path, { timeout: 2_000 });
  try {
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    // The default cache is 2 MB, but page reads are rare here.
    connection.exec("PRAGMA cache_size = -512; PRAGMA journal_size_limit = 4194304");
    const damage = makeReadable(connection, path);
    return { connection, wasOpen, mayHaveLostCommits: wasOpen && hasBooted(connection, bootId), damage };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Opens a database in memory with the readable content of the file and its write-ahead log. Writes nothing to
 * disk.
 */
export function openInMemory(path: string): OpenedDatabase {
  const contents = contentsOf(path);
  // It is unknown whether all writes reached the file: see `Continuity`.
  const opened = { wasOpen: true, mayHaveLostCommits: true };
  if (contents) {
    const connection = inMemory(contents);
    try {
      return { ...opened, connection, damage: makeReadable(connection, path) };
    } catch {
      connection.close();
    }
  }
  const connection = new DatabaseSync(":memory:");
  makeReadable(connection, path);
  return { ...opened, connection, damage: salvageFrom(path, connection) ?? [] };
}

/**
 * Copies the readable rows of a damaged file and its write-ahead log to a new database. Does not change the
 * file. Returns the lost data, or undefined if nothing could be read.
 */
export function salvageFrom(path: string, to: DatabaseSync): Damage[] | undefined {
  const contents = contentsOf(path);
  if (contents === undefined) return undefined;
  to.exec("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE");
  try {
    using from = inMemory(contents);
    addColumnsIfSound(from);
    const schema = new Schema();
    const lost = salvage(from, to, schema);
    const isLost = ({ table }: Damage) => !addedTables.includes(table) || hasTable(from, table);
    const damage = lost && [...lost.filter(isLost), ...deleteDamagedRows(to, schema)];
    to.exec("COMMIT");
    return damage;
  } catch (error) {
    if (to.isTransaction) to.exec("ROLLBACK");
    if (!isCorruption(error)) throw error;
    return undefined;
  } finally {
    to.exec("PRAGMA foreign_keys = ON");
  }
}

// SQLite checks all rows of a table that gets a column. Without it, the table's rows can't be copied.
function addColumnsIfSound(connection: DatabaseSync): void {
  try {
    addColumns(connection);
  } catch (error) {
    if (!isSqlError(error)) throw error;
  }
}

function hasTable(connection: DatabaseSync, name: string): boolean {
  return connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(name) !== undefined;
}

function inMemory(contents: Uint8Array): DatabaseSync {
  const connection = new DatabaseSync(":memory:");
  connection.deserialize(contents);
  return connection;
}

// Throws `corrupt` if pages are damaged, or if tables lack columns.
function makeReadable(connection: DatabaseSync, path: string): Damage[] {
  checkIntegrity(connection, path);
  const schema = new Schema();
  // Rows that others refer to may be deleted.
  connection.exec("PRAGMA foreign_keys = OFF");
  const missing = completeSchema(connection, schema, path);
  const damage = missing
    .filter((table) => !addedTables.includes(table))
    .map((table) => damageOf(table, "the table"));
  damage.push(...deleteDamagedRows(connection, schema));
  connection.exec("PRAGMA foreign_keys = ON");
  return damage;
}

// Returns the tables that were missing.
function completeSchema(connection: DatabaseSync, schema: Schema, path: string): string[] {
  try {
    if (!isNew(connection, path)) return schema.complete(connection);
    createSchema(connection);
    return [];
  } catch (error) {
    if (!isSqlError(error)) throw error;
    throw new StateDamaged({ place: path, problem: messageOf(error) }, { cause: error });
  }
}

const LARGEST_IN_MEMORY = 256 * 1024 * 1024;

function contentsOf(path: string): Uint8Array | undefined {
  try {
    if (sizeOf(path) + sizeOf(`${path}-wal`) > LARGEST_IN_MEMORY) return undefined;
    const file = readFileSync(path);
    if (file.length === 0 && sizeOf(`${path}-wal`) === 0) return undefined;
    return withLog(file, sizeOf(`${path}-wal`) > 0 ? readFileSync(`${path}-wal`) : new Uint8Array());
  } catch {
    return undefined;
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Renames the file and its companions to `<path>.<why>-<time>`. Returns the new path. */
export function setAside(path: string, why: string, now: number): string {
  const stamp = new Date(now).toISOString().replaceAll(":", "").replace(/\..*/, "Z");
  let aside = `${path}.${why}-${stamp}`;
  for (let copy = 2; existsSync(aside); copy++) aside = `${path}.${why}-${stamp}-${copy}`;
  renameAll(path, aside);
  return aside;
}

/** Undoes `setAside`. Deletes the closed file that was created at `path` since, and its companions. */
export function putBack(aside: string, path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
  renameAll(aside, path);
}

// The write-ahead log belongs to the file. If it were left behind, SQLite would replay it into the new file.
function renameAll(from: string, to: string): void {
  for (const suffix of ["", "-wal", "-shm"])
    if (existsSync(from + suffix)) renameSync(from + suffix, to + suffix);
}

function checkIntegrity(connection: DatabaseSync, path: string): void {
  const check = connection.prepare("PRAGMA quick_check(1)").get() as { quick_check: string };
  if (check.quick_check !== "ok") throw new StateDamaged({ place: path, problem: check.quick_check });
}

// Returns whether the file was last opened during another boot.
function hasBooted(connection: DatabaseSync, bootId: string): boolean {
  const last = connection.prepare("SELECT id FROM boot").get()?.id;
  return last !== undefined && last !== bootId;
}

// Must run before SQLite opens the file: the write-ahead log is created with the file's mode.
function keepPrivate(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  for (const suffix of ["", "-wal", "-shm"]) if (existsSync(path + suffix)) chmodSync(path + suffix, 0o600);
}
