import { NodekeeperError } from "@nodekeeper/core/lib";

// SQLite's result codes: https://www.sqlite.org/rescode.html
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

// Errors of the path, which another disk would not fix.
const wrongPath: ReadonlySet<string | undefined> = new Set(["ENOTDIR", "EISDIR", "ELOOP", "ENAMETOOLONG"]);

/** Returns whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return resultOf(error) === SQLITE_BUSY;
}

/** Returns whether the file is damaged or is not a database. */
export function isCorruption(error: unknown): boolean {
  if (error instanceof NodekeeperError) return error.code === "corrupt";
  return hasResult(error, SQLITE_CORRUPT, SQLITE_NOTADB);
}

/** Returns whether a statement does not match the schema, for example because a table is missing. */
export function isSqlError(error: unknown): boolean {
  return hasResult(error, SQLITE_ERROR);
}

/**
 * Returns whether the disk is full, read-only or broken, or the agent has no permission to write to the
 * directory.
 */
export function isDiskTrouble(error: unknown): boolean {
  if (hasResult(error, SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN)) return true;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall !== undefined && !wrongPath.has(code);
}

function hasResult(error: unknown, ...results: readonly number[]): boolean {
  const result = resultOf(error);
  return result !== undefined && results.includes(result);
}

// Extended result codes have details in their upper bits.
function resultOf(error: unknown): number | undefined {
  const code = (error as { errcode?: number }).errcode;
  return code === undefined ? undefined : code & 0xff;
}
