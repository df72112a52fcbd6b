import { NodekeeperError } from "@nodekeeper/core/lib";

// SQLite's result codes: https://www.sqlite.org/rescode.html
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

// Errors of the path, which no other disk would fix.
const wrongPath: ReadonlySet<string | undefined> = new Set(["ENOTDIR", "EISDIR", "ELOOP", "ENAMETOOLONG"]);

/** Another connection has the lock. */
export function isBusy(error: unknown): boolean {
  return resultOf(error) === SQLITE_BUSY;
}

/** The file is no database, or a damaged one. */
export function isCorruption(error: unknown): boolean {
  if (error instanceof NodekeeperError) return error.code === "corrupt";
  return hasResult(error, SQLITE_CORRUPT, SQLITE_NOTADB);
}

/** The disk is full, read-only or broken, or the agent may not write the directory. */
export function isDiskTrouble(error: unknown): boolean {
  if (hasResult(error, SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN)) return true;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall !== undefined && !wrongPath.has(code);
}

function hasResult(error: unknown, ...results: readonly number[]): boolean {
  const result = resultOf(error);
  return result !== undefined && results.includes(result);
}

// Extended codes have the details in their upper bits.
function resultOf(error: unknown): number | undefined {
  const code = (error as { errcode?: number }).errcode;
  return code === undefined ? undefined : code & 0xff;
}
