import { chownSync, lstatSync, mkdtempSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** A user without rights on the node, as the owner of a plugin's files. */
export const STRANGER = 65_532;
/** Whether this process may give files to other users. */
export const isRoot = process.getuid?.() === 0;

/** A new directory that only root can change on its whole path, as a driver's host paths must be; so not below /tmp. */
export function rootDirectory(parent = isRoot ? "/run" : homedir()): { path: string; remove: () => void } {
  const path = mkdtempSync(join(parent, "nk-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Gives files to a user; links are not followed. */
export function give(uid: number, ...paths: string[]): void {
  for (const path of paths) {
    chownSync(path, uid, lstatSync(path).gid);
  }
}
