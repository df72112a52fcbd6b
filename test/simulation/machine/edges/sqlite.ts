// node:sqlite whose databases end with their process, as they were: what was written stays, what was not is lost.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync as RealDatabase } from "node:sqlite";
import { type Machine, machineIfAny } from "../machine.ts";
import { processIfAny } from "../process.ts";
import { failedWrite, isReadOnly } from "./disk-errors.ts";

export { constants, StatementSync } from "node:sqlite";

const open = new Set<DatabaseSync>();
const MOST_PAGES = 1_073_741_823;

export class DatabaseSync extends RealDatabase {
  readonly #process = processIfAny();
  readonly #path: string;
  readonly #offDeath: (() => void) | undefined;

  constructor(path: string, options: ConstructorParameters<typeof RealDatabase>[1] = {}) {
    processIfAny()?.edge();
    // All processes are one: waiting for a lock would stop the one that holds it.
    super(path, { ...options, timeout: 0, readOnly: isReadOnly(path) });
    this.#path = path;
    this.#offDeath = this.#process?.onDeath(() => this.#abandon());
    // Nothing is written to the lock, and a locked database can't be limited.
    if (path === ":memory:" || path.endsWith(".lock")) return;
    open.add(this);
    if (machineIfAny()?.isDiskFull) this.limit(true);
  }

  /** Whether the file may not grow any more. */
  limit(isFull: boolean): void {
    const pages = isFull
      ? (super.prepare("PRAGMA page_count").get() as { page_count: number }).page_count
      : MOST_PAGES;
    super.exec(`PRAGMA max_page_count = ${Math.max(pages, 1)}`);
  }

  override exec(sql: string): void {
    this.#process?.edge();
    if (sql === "COMMIT" && isReadOnly(this.#path)) {
      super.exec("ROLLBACK");
      throw failedWrite();
    }
    super.exec(sql);
    const machine = machineIfAny();
    if (sql === "COMMIT" && machine) machine.logOf(this.#path).committed(machine.scheduler.now);
  }

  // Statements are prepared once and run often: each run is an act of the process.
  override prepare(sql: string): ReturnType<RealDatabase["prepare"]> {
    this.#process?.edge();
    const statement = super.prepare(sql);
    const process = this.#process;
    if (!process || /^\s*(SELECT|PRAGMA)/i.test(sql)) return statement;
    const run = statement.run.bind(statement) as (...values: unknown[]) => ReturnType<typeof statement.run>;
    statement.run = (...values: unknown[]) => {
      process.edge();
      // A transaction is written when it is committed.
      if (!this.isTransaction && isReadOnly(this.#path)) throw failedWrite();
      return run(...values);
    };
    return statement;
  }

  override close(): void {
    if (isReadOnly(this.#path)) this.#abandon();
    else this.#close();
  }

  #close(): void {
    this.#offDeath?.();
    super.close();
    open.delete(this);
  }

  /** Closes the database and leaves its files as they are. */
  #abandon(): void {
    if (!this.isOpen) return;
    // Closing writes the log into the file, which a kill does not.
    const files = ["", "-wal"].map((suffix) => this.#path + suffix);
    const contents = files.map((file) => (existsSync(file) ? readFileSync(file) : undefined));
    this.#close();
    if (this.#path === ":memory:") return;
    for (const [at, file] of files.entries()) {
      if (contents[at]) writeFileSync(file, contents[at]);
    }
    rmSync(`${this.#path}-shm`, { force: true });
  }
}

/** Fills the disk of a machine, or makes space. Databases that are opened later are full, too. */
export function fillDisk(machine: Machine, isFull: boolean): void {
  machine.isDiskFull = isFull;
  for (const database of open) database.limit(isFull);
}
