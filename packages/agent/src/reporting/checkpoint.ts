import { StoredReportsOutdated } from "@nodekeeper/api/errors";
import { type StoredContent, WriteBehind } from "../state/index.ts";
import { encodeContent } from "./content.ts";
import type { ReportingContext } from "./context.ts";
import type { Endpoint } from "./endpoint.ts";
import { encoded } from "./report-message.ts";

// Contents are written before they are published, or after this delay, whichever comes first.
const MAX_DELAY_MS = 1_000;

// Contents up to this total size share a transaction. A larger content gets its own.
const MAX_TRANSACTION_BYTES = 256 * 1024;

/** Batches writes of changed contents. Failed writes are logged and retried every 5 s. */
export class Checkpoint {
  readonly #options: ReportingContext;
  readonly #writes: WriteBehind;
  readonly #changed = new Map<string, StoredContent>();
  readonly #dropped = new Set<string>();
  #isClosing = false;

  constructor(options: ReportingContext) {
    this.#options = options;
    const { clock, log, metrics } = options;
    this.#writes = new WriteBehind({
      what: "the reporter checkpoint",
      write: () => this.#writeSome(),
      onFailure: () => metrics.checkpointFailures.inc(),
      clock,
      log,
    });
  }

  /** Error of the last write. Undefined if it succeeded. */
  get lastError(): string | undefined {
    return this.#writes.lastError;
  }

  /**
   * Returns the stored contents. If they may be older than the published content, deletes them and returns none,
   * because the API server has the latest version.
   */
  load(): StoredContent[] {
    const { store, log } = this.#options;
    const contents = store.contents();
    if (!store.mayBeOutdated) return contents;
    for (const { plugin } of contents) this.drop(plugin);
    const plugins = contents.map(({ plugin }) => plugin);
    if (plugins.length > 0)
      log.warn(
        { errorId: StoredReportsOutdated.id, plugins },
        "stored reports may be older than what is published: they are not restored, and what is published stays for the grace period",
      );
    return [];
  }

  /** Stores what an endpoint reports, if its message was parsed. */
  save({ name: plugin, read, content, updatedAt = 0, stoppedAt, stoppedIn }: Endpoint): void {
    if (!read) return;
    // If a message has invalid fields, stores the published content, which contains their last known good values.
    const stored = content.problems.length > 0 ? encodeContent(content) : encoded(read);
    this.#dropped.delete(plugin);
    this.#changed.set(plugin, {
      plugin,
      content: stored,
      updatedAt,
      stoppedAt: stoppedAt ?? null,
      stoppedIn,
    });
    this.#writes.soon(MAX_DELAY_MS);
  }

  drop(plugin: string): void {
    this.#changed.delete(plugin);
    this.#dropped.add(plugin);
    this.#writes.soon(MAX_DELAY_MS);
  }

  /** Writes all changed contents. Large amounts take several turns of the event loop. Never rejects. */
  async flush(): Promise<void> {
    while (this.#isDirty && this.#writes.flush() && this.#isDirty) await this.#options.turns.pass();
  }

  /** Writes all pending changes one last time, without retries. */
  close(): void {
    this.#isClosing = true;
    this.#writes.close();
  }

  get #isDirty(): boolean {
    return this.#changed.size > 0 || this.#dropped.size > 0;
  }

  #writeSome(): void {
    const some: StoredContent[] = [];
    let bytes = 0;
    for (const stored of this.#changed.values()) {
      bytes += stored.content.length;
      if (some.length > 0 && bytes > MAX_TRANSACTION_BYTES && !this.#isClosing) break;
      some.push(stored);
    }
    this.#options.store.saveContents(some, [...this.#dropped], some.length === this.#changed.size);
    for (const { plugin } of some) this.#changed.delete(plugin);
    this.#dropped.clear();
    if (this.#isDirty) this.#writes.soon(0);
  }
}
