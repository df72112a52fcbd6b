import { StateDamaged, StateOfNewerVersion, StatePartlyDamaged } from "@nodekeeper/api/errors";
import type { Logger } from "@nodekeeper/core/lib";
import { NewerSchemaError } from "./definitions.ts";
import { type OpenedDatabase, openFile, openInMemory, putBack, salvageFrom, setAside } from "./open-file.ts";
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
 * Throws SQLite's error if the disk is not writable or has no room for the new file; a damaged file then stays at its
 * path.
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

function replaceCorrupt(error: unknown, place: DatabasePlace, log: Logger): UsableDatabase {
  const { path } = place;
  const aside = setAside(path, "corrupt", place.now);
  const { opened, damage } = openSalvaged(aside, place);
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

// If the disk has no room for the readable rows, the file is put back: a start in memory and the next start read it.
function openSalvaged(aside: string, { path, bootId }: DatabasePlace) {
  let opened: OpenedDatabase | undefined;
  try {
    opened = openFile(path, bootId);
    return { opened, damage: salvageFrom(aside, opened.connection) };
  } catch (error) {
    opened?.connection.close();
    putBack(aside, path);
    throw error;
  }
}

function logDamage({ damage }: OpenedDatabase, path: string, log: Logger, more: object = {}): void {
  if (damage.length === 0 && !("err" in more)) return;
  log.error(
    { errorId: StatePartlyDamaged.id, path, damage, ...more },
    "skipped unreadable parts of the state database",
  );
}
