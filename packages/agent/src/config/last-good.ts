import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@nodekeeper/core/lib";

/** Name of the file in the state directory. */
const LAST_GOOD_FILE = "nodekeeper.config";

interface Kept {
  /** Path of the configuration file. */
  file: string;
  text: string;
}

/**
 * Returns the path of the text with which an agent of this state directory ran last. A start uses it if the
 * configuration file is refused. Text rather than parsed settings, because flags and variables still override
 * it, and the version that reads it validates it by its own rules.
 */
export function lastGoodPath(stateDir: string): string {
  return join(stateDir, LAST_GOOD_FILE);
}

interface LastGood {
  /** Undefined if there is none for the configuration file. */
  text?: string;
  /** Why the file that keeps the text can't be read, without its path. */
  damage?: string;
}

/** Returns the text that was kept for this configuration file. */
export function readLastGood(stateDir: string, file: string): LastGood {
  try {
    const kept: Partial<Kept> = JSON.parse(readFileSync(lastGoodPath(stateDir), "utf8"));
    if (typeof kept?.file !== "string" || typeof kept.text !== "string")
      return { damage: "it has no file name or no text" };
    return kept.file === file ? { text: kept.text } : {};
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? {} : { damage: messageOf(error) };
  }
}

/**
 * Stores the text unless it is stored already. Returns why the earlier file could not be read if it was damaged. On
 * failure, removes the earlier text, because it may allow what the newer one forbids, and throws.
 */
export function keepLastGood(stateDir: string, kept: Kept): string | undefined {
  const earlier = readLastGood(stateDir, kept.file);
  if (earlier.text === kept.text) return undefined;
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
    return earlier.damage;
  } catch (error) {
    for (const outdated of [path, temporary]) rmSync(outdated, { force: true });
    throw error;
  }
}
