/** A change of one record. */
export interface RecordChange {
  /** Changes the record in memory. Called again, after `revert`, if the change is then committed alone. */
  apply: () => void;
  /** Undoes the last `apply`. */
  revert: () => void;
  /** Writes the change to the database, within a transaction. */
  write: () => void;
}

interface Pending {
  change: RecordChange;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Commits the changes of one turn of the event loop in one transaction. Of a burst of claims, many are recorded in the
 * same turn, and a transaction costs more than a record.
 */
export class ClaimCommits {
  readonly #commit: (work: () => void) => void;
  #pending: Pending[] = [];

  /** @param commit runs work in a transaction: throws, and changes nothing in the database, if it fails */
  constructor(commit: (work: () => void) => void) {
    this.#commit = commit;
  }

  /**
   * Applies a change at once. Resolves when it is committed. If the commit fails, reverts the change and rejects.
   * Changes are written in the order of the calls.
   */
  add(change: RecordChange): Promise<void> {
    change.apply();
    return new Promise((resolve, reject) => {
      if (this.#pending.push({ change, resolve, reject }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    try {
      this.#write(pending);
    } catch (error) {
      for (const { change } of pending.toReversed()) change.revert();
      if (pending.length === 1) pending[0]!.reject(error);
      else for (const each of pending) this.#writeAlone(each);
    }
  }

  // A large record may not fit on a nearly full disk, although the others do.
  #writeAlone(pending: Pending): void {
    pending.change.apply();
    try {
      this.#write([pending]);
    } catch (error) {
      pending.change.revert();
      pending.reject(error);
    }
  }

  #write(pending: readonly Pending[]): void {
    this.#commit(() => {
      for (const { change } of pending) change.write();
    });
    for (const { resolve } of pending) resolve();
  }
}
