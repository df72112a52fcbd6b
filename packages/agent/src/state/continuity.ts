import { randomUUID } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { BootMark } from "./boot-directory.ts";

/** Stores whose consumers must know whether the latest published state is in the database. */
export const continuedStores = ["lifecycle", "reporting"] as const;
export type ContinuedStore = (typeof continuedStores)[number];

/**
 * What is known about a store at the start. `newest`: it is proven to contain everything that the previous
 * agent published. `behind`: there is evidence that it does not, such as a directory restored from a backup
 * or failed writes. `unknown`: neither, for example after a reboot.
 */
export type Standing = "newest" | "behind" | "unknown";

/**
 * Proves at the start whether the database is the one that the previous agent left. A mark outside of the
 * state directory (`BootDirectory`) contains the ID of the database, the number of commits, and the stores
 * with unwritten state.
 *
 * 1. The mark is written after each commit, so SIGKILL leaves it at most one commit behind. A database with
 *    fewer commits than the mark, or with another ID, is a different one, such as a copy.
 * 2. Each start without a proof gives the database a new ID, so that a later copy of an earlier state is not
 *    mistaken for it.
 * 3. A store that was not proven to be the newest remains so until its next write. A kill before that write
 *    does not change this.
 */
export class Continuity {
  /** Standing of the database as a whole. */
  readonly standing: Standing;
  readonly #mark: BootMark;
  readonly #unwrittenBefore: ReadonlySet<string>;
  readonly #count: StatementSync;
  readonly #isKept: boolean;
  readonly #unwritten: Set<string>;
  #id: string;
  #commits: number;

  /**
   * @param isKept whether future commits are written to disk
   * @param damaged stores with rows that were found to be damaged at this start
   */
  constructor(
    connection: DatabaseSync,
    mark: BootMark,
    { isKept, damaged }: { isKept: boolean; damaged: readonly ContinuedStore[] },
  ) {
    this.#mark = mark;
    this.#isKept = isKept;
    this.#count = connection.prepare(
      `INSERT INTO continuity (one, id, commits) VALUES (1, ?, ?)
       ON CONFLICT (one) DO UPDATE SET id = excluded.id, commits = excluded.commits`,
    );
    const stored = connection.prepare("SELECT id, commits FROM continuity").get();
    this.#id = (stored?.id as string | undefined) ?? "";
    this.#commits = (stored?.commits as number | undefined) ?? 0;
    const before = readMark(mark.before);
    this.standing = standingOf(before, this.#id, this.#commits);
    this.#unwrittenBefore = new Set([...(before?.unwritten ?? []), ...damaged]);
    const isProven = this.standing === "newest";
    this.#unwritten = new Set(isProven && isKept ? this.#unwrittenBefore : continuedStores);
    // `counting` stores the new ID. A kill before that leaves different IDs, which is no proof.
    if (!isProven) this.#id = randomUUID();
    this.#write();
  }

  of(store: ContinuedStore): Standing {
    return this.#unwrittenBefore.has(store) ? "behind" : this.standing;
  }

  /** Counts a commit. Must be called within the transaction. */
  counting(): void {
    this.#count.run(this.#id, this.#commits + 1);
  }

  /** @param store the store that has written all of its state */
  committed(store: string | undefined): void {
    this.#commits++;
    if (store !== undefined && this.#isKept) this.#unwritten.delete(store);
    this.#write();
  }

  /**
   * @param store the store that failed to write its state; undefined for a store that rejects changes it
   * cannot write
   */
  failed(store: string | undefined): void {
    if (store === undefined || this.#unwritten.has(store)) return;
    this.#unwritten.add(store);
    this.#write();
  }

  #write(): void {
    this.#mark.write(`${this.#id} ${this.#commits} ${[...this.#unwritten].join(",") || "-"}`);
  }
}

interface Mark {
  id: string;
  commits: number;
  unwritten: ReadonlySet<string>;
}

function readMark(text: string | undefined): Mark | undefined {
  const [, id = "", commits, unwritten = ""] = /^(\S+) (\d{1,15}) (\S+) *$/.exec(text ?? "") ?? [];
  if (commits === undefined) return undefined;
  return { id, commits: Number(commits), unwritten: new Set(unwritten.split(",")) };
}

function standingOf(mark: Mark | undefined, id: string, commits: number): Standing {
  if (mark === undefined) return "unknown";
  return mark.id === id && commits >= mark.commits ? "newest" : "behind";
}
