import { StateDamaged, StateOfNewerVersion, StatePartlyDamaged } from "@nodekeeper/api/errors";
import type { Logger } from "@nodekeeper/core/lib";
import { NewerSchemaError } from "./definitions.ts";
import { type OpenedDatabase, openFile, openInMemory, salvageFrom, setAside } from "./open-file.ts";
import { isCorruption } from "./sqlite-errors.ts";

/**
 * A usable database, and the path of its predecessor if that was set aside and nothing of it could be used.
 */
export interface UsableDatabase {
  opened: OpenedDatabase;
  aside: string | undefined;
}

/** The file of the database, the machine's boot, and the time: wall milliseconds. */
interface DatabasePlace {
  path: string;
  bootId: string;
  now: number;
}

/**
 * Opens the file. Sets an unusable file aside and creates a new one with its readable rows. Logs lost data.
 * Throws SQLite's error if the disk is not writable.
 */
export function openUsable(place: DatabasePlace, log: Logger): UsableDatabase {
  const { path, bootId, now } = place;
  try {
    const opened = openFile(path, bootId);
    logDamage(opened, path, log);
    return { opened, aside: undefined };
  } catch (error) {
    if (error instanceof NewerSchemaError) {
      const aside = setAside(path, `schema-${error.version}`, now);
      log.warn(
        { errorId: StateOfNewerVersion.id, err: error, path, setAside: aside },
        "state database was written by a newer agent: set aside and replaced by a new one",
      );
      return { opened: openFile(path, bootId), aside };
    }
    if (!isCorruption(error)) throw error;
    return replaceCorrupt(error, place, log);
  }
}

/** Like `openInMemory`, but logs lost data. */
export function openUsableInMemory(path: string, log: Logger): OpenedDatabase {
  const opened = openInMemory(path);
  logDamage(opened, path, log);
  return opened;
}

function replaceCorrupt(error: unknown, { path, bootId, now }: DatabasePlace, log: Logger): UsableDatabase {
  const aside = setAside(path, "corrupt", now);
  const opened = openFile(path, bootId);
  const damage = salvageFrom(aside, opened.connection);
  if (damage === undefined) {
    log.error(
      { errorId: StateDamaged.id, err: error, path, setAside: aside },
      "state database is corrupt: set aside and replaced by a new one",
    );
    return { opened, aside };
  }
  const salvaged = { ...opened, damage };
  logDamage(salvaged, path, log, { err: error, setAside: aside });
  return { opened: salvaged, aside: undefined };
}

function logDamage({ damage }: OpenedDatabase, path: string, log: Logger, more: object = {}): void {
  if (damage.length === 0 && !("err" in more)) return;
  log.error(
    { errorId: StatePartlyDamaged.id, path, damage, ...more },
    "skipped unreadable parts of the state database",
  );
}
