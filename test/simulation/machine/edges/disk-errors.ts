import { readlinkSync, writeFileSync } from "node:fs";
import { sep } from "node:path";
import { machineIfAny } from "../machine.ts";
import { processIfAny } from "../process.ts";

const SQLITE_IOERR_WRITE = 778;

/**
 * Returns whether a file is on a file system that the kernel has made read-only, as ext4 does after an error: also files
 * that are already open can't be written then. The process `init` acts on the disk itself.
 * @param file path or file descriptor
 */
export function isReadOnly(file: unknown): boolean {
  const machine = machineIfAny();
  if (!machine?.readOnlyDirectory || processIfAny() === machine.init) return false;
  return isIn(machine.readOnlyDirectory, file);
}

/** Throws as system calls do that would change a file of a read-only file system. */
export function mustBeWritable(call: string, file: unknown): void {
  if (!isReadOnly(file)) return;
  const message = `EROFS: read-only file system, ${call} '${file}'`;
  throw Object.assign(new Error(message), { code: "EROFS", errno: -30, syscall: call, path: file });
}

/** Throws as a write does that needs a new block on a full disk. A file that is written by its path is empty then. */
export function mustHaveSpace(call: string, file: unknown): void {
  const machine = machineIfAny();
  if (!machine?.isDiskFull || processIfAny() === machine.init || !isIn(machine.stateDirectory, file)) return;
  if (typeof file === "string") writeFileSync(file, "");
  const message = `ENOSPC: no space left on device, ${call}`;
  throw Object.assign(new Error(message), { code: "ENOSPC", errno: -28, syscall: call });
}

function isIn(directory: string, file: unknown): boolean {
  const path = typeof file === "number" ? readlinkSync(`/proc/self/fd/${file}`) : file;
  return typeof path === "string" && path.startsWith(directory + sep);
}

/** The error of SQLite if it can't write to a file that it has opened. */
export function failedWrite(): Error {
  return Object.assign(new Error("disk I/O error"), {
    code: "ERR_SQLITE_ERROR",
    errcode: SQLITE_IOERR_WRITE,
    errstr: "disk I/O error",
  });
}
