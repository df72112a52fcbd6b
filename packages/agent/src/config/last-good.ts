import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Name of the file in the state directory. */
const LAST_GOOD_FILE = "nodekeeper.config";

interface Kept {
  /** Path of the configuration file. */
  file: string;
  text: string;
}

/**
 * Returns where the text is kept with which an agent of this state directory ran last. A start with a configuration file
 * that is refused uses it. Text rather than parsed settings: flags and variables still override it, and the version that
 * reads it checks it by its own rules.
 */
export function lastGoodPath(stateDir: string): string {
  return join(stateDir, LAST_GOOD_FILE);
}

/** Returns the text that was kept for this configuration file. Undefined if there is none or it is damaged. */
export function readLastGood(stateDir: string, file: string): string | undefined {
  try {
    const kept: Partial<Kept> = JSON.parse(readFileSync(lastGoodPath(stateDir), "utf8"));
    return kept.file === file && typeof kept.text === "string" ? kept.text : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps the text, unless it is kept already. On failure, throws and removes the earlier text: what it allowed, the later
 * one may forbid.
 */
export function keepLastGood(stateDir: string, kept: Kept): void {
  if (readLastGood(stateDir, kept.file) === kept.text) return;
  const path = lastGoodPath(stateDir);
  const temporary = `${path}.new`;
  try {
    const descriptor = openSync(temporary, "w", 0o600);
    try {
      writeFileSync(descriptor, JSON.stringify(kept));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    for (const outdated of [path, temporary]) rmSync(outdated, { force: true });
    throw error;
  }
}
