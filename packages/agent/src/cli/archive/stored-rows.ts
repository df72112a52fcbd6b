import { type ArchivedRecord, inOrder, type ReadEvent, readRecord } from "@nodekeeper/api/archive";
import { messageOf } from "@nodekeeper/core/lib";
import { isExactly, type LogsRow, quoted, type VictoriaLogs } from "./victoria-logs.ts";

const MOST_NAMED = 3;
const MALFORMED = "records can't be read";
const FIELDS = [
  ...["_time", "event_name", "_msg", "k8s.node.name", "nodekeeper.record.id", "nodekeeper.record.sequence"],
  ...["nodekeeper.schema.version", "nodekeeper.pod.owner"],
];

/** Selects records. Omitted fields match all records. Times are milliseconds since the epoch. */
export interface Selection {
  events?: readonly ReadEvent[];
  node?: string | undefined;
  /** Values of attributes. */
  where?: Readonly<Record<string, string>>;
  /** Patterns of attributes. */
  matching?: Readonly<Record<string, string>>;
  since?: number;
}

/** Records that were selected. */
export interface SelectedRecords {
  /** Oldest first, without duplicates. */
  records: ArchivedRecord[];
  /** Whether there are more: the oldest are left out. */
  isCut: boolean;
}

/**
 * The stores with the exported records: one, or several replicas. All are queried, because each may have lost different
 * records. Stores that do not answer and rows that are not records are reported in `problems` and `unread`.
 */
export class StoredRows {
  readonly #stores: readonly VictoriaLogs[];
  readonly #attributes: Readonly<Record<string, string>>;
  readonly #problems = new Map<string, string>();
  /** The time since which records may be missing, milliseconds since the epoch, by reason. */
  readonly #unread = new Map<string, number>();
  #malformed = 0;

  /** @param attributes resource attributes that all records must have */
  constructor(stores: readonly VictoriaLogs[], attributes: Readonly<Record<string, string>>) {
    this.#stores = stores;
    this.#attributes = attributes;
  }

  /** Why results may be incomplete: stores that failed and records that can't be read. Without trailing periods. */
  get problems(): string[] {
    const more = this.#malformed > MOST_NAMED ? [`${this.#malformed} records can't be read in total`] : [];
    return [...this.#problems.values(), ...more];
  }

  /** Reasons why records may be missing in results. `from`: since when, milliseconds since the epoch. */
  get unread(): { from: number; why: string }[] {
    return [...this.#unread].map(([why, from]) => ({ from, why }));
  }

  /** The stores, for messages. */
  get name(): string {
    return this.#stores.map(({ url }) => url).join(", ");
  }

  /** Returns the newest `limit` records. Throws `unavailable` if no store answers. */
  async records(selection: Selection, limit: number): Promise<SelectedRecords> {
    const query = `${this.#filter(selection)} | fields ${FIELDS.map(quoted).join(", ")}`;
    const answers = await this.#ask(query, limit + 1);
    const records = inOrder(answers.flat().flatMap((row) => this.#read(row)));
    const isCut = answers.some((rows) => rows.length > limit) || records.length > limit;
    return { records: isCut ? newest(records, limit) : records, isCut };
  }

  /** Returns the rows of a query with the LogsQL pipe `pipe`, at most `limit` per store. Throws as `records`. */
  async rows(selection: Selection, pipe: string, limit: number): Promise<LogsRow[]> {
    return (await this.#ask(`${this.#filter(selection)} | ${pipe}`, limit)).flat();
  }

  #filter({ events = [], node, where = {}, matching = {}, since }: Selection): string {
    const streams = { "service.name": "nodekeeper", "k8s.node.name": node, ...this.#attributes };
    const labels = Object.entries(streams).flatMap(([name, value]) =>
      value === undefined ? [] : [`${quoted(name)}=${quoted(value)}`],
    );
    if (events.length > 0) labels.push(`event_name in (${events.map(quoted).join(", ")})`);
    const time = since === undefined ? [] : [`_time:>=${new Date(since).toISOString()}`];
    const fields = Object.entries(where).map(([name, value]) => isExactly(name, value));
    const patterns = Object.entries(matching).map(([name, pattern]) => `${quoted(name)}:~${quoted(pattern)}`);
    return [...time, `{${labels.join(",")}}`, ...fields, ...patterns].join(" ");
  }

  async #ask(query: string, limit: number): Promise<LogsRow[][]> {
    const answers = await Promise.allSettled(this.#stores.map((store) => store.query(query, limit)));
    const failed = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
    if (failed.length === answers.length) throw failed[0];
    for (const error of failed) this.#problems.set(messageOf(error), messageOf(error));
    if (failed.length > 0) this.#unread.set("a store of the archive did not answer", 0);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
  }

  #read(row: LogsRow): ArchivedRecord[] {
    const { _time: time = "", event_name: event = "", _msg: body = "" } = row;
    const record = readRecord({ time, event, body, fields: row });
    if (!("problem" in record)) return [record];
    if (++this.#malformed <= MOST_NAMED) this.#problems.set(record.problem, record.problem);
    // The record of a gap is written after the gap, so its time does not show when the gap began.
    const from = event === "nodekeeper.gap" ? 0 : Date.parse(time) || 0;
    this.#unread.set(MALFORMED, Math.min(from, this.#unread.get(MALFORMED) ?? from));
    return [];
  }
}

function newest(records: readonly ArchivedRecord[], limit: number): ArchivedRecord[] {
  const kept = new Set([...records].sort((a, b) => b.at - a.at).slice(0, limit));
  return records.filter((record) => kept.has(record));
}
