import { lastIdOf } from "./database.ts";
import { Store } from "./store.ts";

/** A signal: what a plugin compares with a threshold. */
export interface StoredSignal {
  id: number;
  plugin: string;
  /** Empty if the plugin named none. */
  scope: string;
  operator: string;
  unit: string | undefined;
}

/** One reading of each signal within about a minute. Times are in milliseconds since the epoch. */
export interface StoredMinute {
  /** Of the first round. */
  from: number;
  /** Of the last round. */
  to: number;
  readings: readonly StoredReading[];
}

/** The signal's ID, the observed value, the threshold, and how it was met. */
export type StoredReading = readonly [
  signal: number,
  observed: number | null,
  threshold: number | null,
  met: string,
];

/** Minutes that are kept: 24 hours. Counted instead of dated, so that a step of the wall clock deletes none. */
export const MOST_MINUTES = 1_440;

/** The history of signals: a ring of minutes. */
export class SignalStore extends Store {
  /** Returns the signals, oldest first. */
  signals(): StoredSignal[] {
    const rows = this.database.all<Omit<StoredSignal, "unit"> & { unit: string | null }>(
      "SELECT id, plugin, scope, operator, unit FROM signal ORDER BY id",
    );
    return rows.map(({ unit, ...row }) => ({ ...row, unit: unit ?? undefined }));
  }

  /** The largest ID that any signal has had. IDs are not reused. */
  get lastId(): number {
    const last = lastIdOf(this.database, "signal");
    if (last > 0) return last;
    // If the table was lost, so is its sequence. The minutes still have the IDs.
    const ids = this.minutes(0, Number.MAX_SAFE_INTEGER).flatMap(({ readings }) =>
      readings.map(([id]) => id),
    );
    return ids.reduce((most, id) => Math.max(most, id), 0);
  }

  /** Returns the minutes that overlap a range, in the order in which they were written. */
  minutes(since: number, until: number): StoredMinute[] {
    const rows = this.database.all<{ from: number; to: number; readings: string }>(
      `SELECT from_at AS "from", to_at AS "to", readings FROM signal_minute
       WHERE to_at >= ? AND from_at <= ? ORDER BY id`,
      ...[since, until],
    );
    return rows.map(({ from, to, readings }) => ({ from, to, readings: readingsIn(readings) }));
  }

  /**
   * Writes changed signals and new minutes in one transaction, and deletes the oldest minutes. If any signal changed,
   * also deletes all signals except the `known` ones. Throws if the disk is full; nothing is changed then.
   */
  save(changed: readonly StoredSignal[], known: readonly number[], minutes: readonly StoredMinute[]): void {
    this.database.transaction(() => {
      for (const { id, plugin, scope, operator, unit } of changed)
        this.database.insert("signal", { id, plugin, scope, operator, unit }, "REPLACE");
      if (changed.length > 0)
        this.database.run(
          "DELETE FROM signal WHERE id NOT IN (SELECT value FROM json_each(?))",
          JSON.stringify(known),
        );
      for (const { from, to, readings } of minutes)
        this.database.insert("signal_minute", {
          from_at: Math.floor(from),
          to_at: Math.floor(to),
          readings: JSON.stringify(readings),
        });
      this.database.run(
        "DELETE FROM signal_minute WHERE id <= (SELECT max(id) FROM signal_minute) - ?",
        MOST_MINUTES,
      );
    });
  }
}

// What is not of this form was damaged, and is omitted.
function readingsIn(text: string): StoredReading[] {
  const items = JSON.parse(text) as unknown;
  return Array.isArray(items) ? items.filter(isReading) : [];
}

function isReading(item: unknown): item is StoredReading {
  if (!Array.isArray(item) || item.length !== 4) return false;
  const [signal, observed, threshold, met] = item;
  const isNumber = (value: unknown) => value === null || typeof value === "number";
  return Number.isSafeInteger(signal) && isNumber(observed) && isNumber(threshold) && typeof met === "string";
}
