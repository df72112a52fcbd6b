import type { ApiResource, GroupVersionKind, KubeObject } from "../kube/index.ts";
import {
  Backoff,
  codeOf,
  type ErrorCode,
  type HealthCheck,
  messageOf,
  NodekeeperError,
} from "../lib/index.ts";
import type { PublishedPart } from "../state/index.ts";
import { type ApplyPart, applyParts, desiredText, ownedFields } from "./bodies.ts";
import type { PluginContent } from "./content.ts";
import { kindKey, node } from "./kinds.ts";
import type { MergedObject } from "./merge.ts";
import { Ownership } from "./ownership.ts";
import { PartWriter, type Wish } from "./part-writer.ts";
import { checkResource, type PublisherOptions } from "./publish-options.ts";
import { RemoteObject } from "./remote-object.ts";

/** An object as the status API shows it. */
export interface ObjectStatus {
  object: string;
  plugins: readonly string[];
  conflicts: MergedObject["conflicts"];
  /** Plugins whose content the server refuses, and its words. */
  quarantined: Readonly<Record<string, string>>;
  /** Since the agent's start. */
  writes: number;
  /** Wall milliseconds. */
  lastWriteAt: number | undefined;
  pending: boolean;
  lastError: string | undefined;
}

/**
 * `more`: another write is needed; `done`: nothing is left to write; `unsettled`: it is too early, plugins may still
 * come back that a forgotten predecessor published.
 */
type Outcome = "done" | "more" | "unsettled";

const LONGEST_RETRY_AFTER_MS = 300_000;
// Newer content is no reason to ask the server sooner again. A refusal of the content itself is one.
const serverTrouble: ReadonlySet<ErrorCode> = new Set(["unavailable", "throttled", "deadline"]);

/** Writes one object. The publisher calls `writeNext` for one object never twice at once. */
export class ObjectWriter {
  readonly object: string;
  readonly #kind: GroupVersionKind;
  readonly #options: PublisherOptions;
  readonly #wake: () => void;
  readonly #isNode: boolean;
  readonly #parts: Record<ApplyPart, PartWriter>;
  readonly #failures = new Backoff({ baseMs: 250, maxMs: 30_000, jitter: 0.3 });
  readonly #ownership: Ownership;
  #merged: MergedObject | undefined;
  #writes = 0;
  #isBusy = false;
  // The server itself said when to come back.
  #isTold = false;
  #writtenAt: number | undefined;

  /** Monotonic: since when there is something to write. */
  changedAt: number | undefined;
  /** Monotonic; of the last try. */
  lastWriteAt = Number.NEGATIVE_INFINITY;
  /** Monotonic: a server in trouble is left alone until then, whatever changes meanwhile. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  lastError: string | undefined;
  lastErrorCode: ErrorCode | undefined;
  /** The part that is being written, or was last. */
  writing: ApplyPart = "main";
  /** Ends when the watch of the object has ended. */
  watching: Promise<void> | undefined;
  /** Says whether the object's watch works; undefined before the first write. */
  watchHealth: HealthCheck | undefined;

  constructor(kind: GroupVersionKind, options: PublisherOptions, wake: () => void) {
    this.#kind = kind;
    this.object = kindKey(kind);
    this.#options = options;
    this.#wake = wake;
    this.#isNode = this.object === kindKey(node);
    const { fieldManager, clock } = options;
    this.#ownership = new Ownership({ fieldManager, clock, onLost: (parts) => this.#repair(parts) });
    const listener = {
      onTry: () => {
        this.lastWriteAt = clock.monotonic();
      },
      onWritten: (part: ApplyPart, answer: KubeObject) => this.#written(part, answer),
    };
    this.#parts = {
      main: new PartWriter("main", this.object, options, listener),
      status: new PartWriter("status", this.object, options, listener),
    };
  }

  /** Takes over what a predecessor published. */
  restore({ part, body }: PublishedPart): void {
    if (part === "main" || part === "status") this.#parts[part].restore(body);
  }

  /** Takes over what a predecessor published instead of refused contents: a plugin's message by its name. */
  restoreStandIns(part: string, messages: ReadonlyMap<string, Uint8Array>): void {
    if (part === "main" || part === "status") this.#parts[part].restoreStandIns(messages);
  }

  /**
   * Writes the part that needs it. Throws what the API server, or the way to it, has against it.
   * @param unsettled whether it is early after a start without memory
   */
  async writeNext(signal: AbortSignal, watchSignal: AbortSignal, unsettled: boolean): Promise<Outcome> {
    const since = this.changedAt;
    const before = this.#writes;
    // What changes from here on counts as a change of its own, and wakes the queue by itself.
    this.changedAt = undefined;
    this.#isBusy = true;
    try {
      const outcome = await this.#writePart(signal, watchSignal, unsettled);
      if (outcome !== "done") this.changedAt = since ?? this.changedAt;
      else if (since !== undefined && this.#writes > before) {
        this.#options.metrics.delay.observe((this.lastWriteAt - since) / 1000);
      }
      return outcome;
    } catch (error) {
      this.changedAt = since ?? this.changedAt;
      throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  async #writePart(signal: AbortSignal, watchSignal: AbortSignal, unsettled: boolean): Promise<Outcome> {
    const { client, contents, metrics, settings, beforeWrite } = this.#options;
    for (const part of applyParts) this.#parts[part].expire(settings().resyncInterval);
    const all = contents();
    const wishes = this.#wishes(all);
    this.#merged = wishes.main.merged;
    metrics.conflicts.set({ object: this.object }, this.#merged?.conflicts.length ?? 0);
    const pending = applyParts.filter((part) => this.#isPending(part, wishes[part]));
    const [part] = pending;
    if (!part) return "done";
    this.writing = part;

    const resource = checkResource(await client.resolve(this.#kind, { signal }), this.object);
    const remote = new RemoteObject(resource, this.#isNode, this.#options);
    if (!this.#merged && !(await remote.read(signal))) {
      for (const each of applyParts) this.#parts[each].forget();
      return "done";
    }
    if (unsettled && this.#writes === 0 && (await this.#isOwned(remote, signal))) return "unsettled";
    // Before the write: it is how the end of a Node's absence is learned.
    this.#watch(resource, watchSignal);
    beforeWrite();
    await this.#parts[part].write(remote, wishes[part], all, signal);
    const refused = applyParts.reduce((sum, each) => sum + this.#parts[each].quarantine.refusals.size, 0);
    metrics.quarantined.set({ object: this.object }, refused);
    return pending.length > 1 ? "more" : "done";
  }

  /** How long until contents that are held back may be tried, milliseconds; infinite where there are none. */
  heldFor(): number {
    const until = Math.min(...applyParts.map((part) => this.#parts[part].quarantine.heldUntil));
    return Math.max(until - this.#options.clock.monotonic(), 0);
  }

  succeeded(): void {
    this.#failures.reset();
    this.lastError = undefined;
    this.lastErrorCode = undefined;
  }

  /** Records a failure; answers how long to wait before the next try, milliseconds. */
  failed(error: unknown): number {
    const now = this.#options.clock.monotonic();
    this.lastError = messageOf(error);
    this.lastErrorCode = codeOf(error);
    this.changedAt ??= now;
    this.lastWriteAt = now;
    // Without its object a status has no place: the main part makes it anew.
    if (this.lastErrorCode === "notFound") this.#parts.main.applied = undefined;
    const asked = error instanceof NodekeeperError ? (error.retryAfterMs ?? 0) : 0;
    const wait = Math.max(this.#failures.next(), Math.min(asked, LONGEST_RETRY_AFTER_MS));
    this.#isTold = asked > 0;
    if (serverTrouble.has(this.lastErrorCode)) this.pausedUntil = now + wait;
    return wait;
  }

  status(): ObjectStatus {
    const refusals = applyParts.flatMap((part) => [...this.#parts[part].quarantine.refusals]);
    return {
      object: this.object,
      plugins: this.#merged?.plugins ?? [],
      conflicts: this.#merged?.conflicts ?? [],
      quarantined: Object.fromEntries(refusals.map(([plugin, { message }]) => [plugin, message])),
      writes: this.#writes,
      lastWriteAt: this.#writtenAt,
      pending: this.#isBusy || this.changedAt !== undefined,
      lastError: this.lastError,
    };
  }

  /** Ends what the writer began by itself. */
  async close(): Promise<void> {
    this.#ownership.close();
    await this.watching;
  }

  // The parts differ in what they merge only while the server refuses something.
  #wishes(all: ReadonlyMap<string, PluginContent>): Record<ApplyPart, Wish> {
    const main = this.#parts.main.wish(all);
    const contents = this.#parts.status.quarantine.filter(all);
    if (contents !== main.contents) return { main, status: this.#parts.status.wish(all) };
    return { main, status: { ...main, text: desiredText(main.merged, "status") } };
  }

  #isPending(part: ApplyPart, { merged, text }: Wish): boolean {
    const { applied, published } = this.#parts[part];
    if (applied !== undefined) return text !== applied;
    // The status can only be written to an object that is there; the main part makes it.
    if (part === "main" && merged && !this.#isNode) return true;
    return text !== "" || published !== "";
  }

  #written(part: ApplyPart, answer: KubeObject): void {
    const { clock, metrics } = this.#options;
    this.lastWriteAt = clock.monotonic();
    this.#writtenAt = clock.now();
    this.#writes++;
    metrics.writes.inc({ object: this.object, part, result: "ok" });
    this.#ownership.wrote(part, answer);
  }

  async #isOwned(remote: RemoteObject, signal: AbortSignal): Promise<boolean> {
    const live = await remote.read(signal);
    const { fieldManager } = this.#options;
    return live !== undefined && applyParts.some((part) => ownedFields(live, fieldManager, part) !== "");
  }

  #watch(resource: ApiResource, signal: AbortSignal): void {
    if (this.watching || signal.aborted) return;
    const { nodeName, log } = this.#options;
    const watcher = this.#options.watch(resource, nodeName, {
      onReplace: (objects) => this.#saw(objects.find(({ metadata }) => metadata.name === nodeName)),
      onUpsert: (object) => this.#saw(object),
      onDelete: () => this.#saw(undefined),
      onOpen: () => this.#reached(),
    });
    this.watchHealth = watcher.healthCheck();
    this.watching = watcher.run(signal).catch((error) => {
      if (!signal.aborted)
        log.error({ err: error, object: this.object }, "watch of a published object ended");
    });
  }

  #saw(object: KubeObject | undefined): void {
    this.#ownership.saw(object);
    // A Node that went and came back ends the waiting for it.
    if (this.#isNode && object && this.lastErrorCode === "notFound") this.#wake();
  }

  // The server answers again: who waits for that need not wait any longer, unless it was told how long.
  #reached(): void {
    if (this.#isTold || this.lastErrorCode === undefined || !serverTrouble.has(this.lastErrorCode)) return;
    this.pausedUntil = Number.NEGATIVE_INFINITY;
    this.#wake();
  }

  #repair(parts: readonly ApplyPart[]): void {
    const { clock, log, metrics } = this.#options;
    metrics.repairs.inc({ object: this.object });
    log.info(
      { object: this.object, parts },
      "published fields were changed by somebody else: applying again",
    );
    for (const part of parts) this.#parts[part].applied = undefined;
    this.changedAt ??= clock.monotonic();
    this.#wake();
  }
}
