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
import { type ApplyPart, applyParts, desiredText } from "./bodies.ts";
import type { PluginContent } from "./content.ts";
import { kindKey, node } from "./kinds.ts";
import { type MergedObject, mergeObject } from "./merge.ts";
import { Ownership } from "./ownership.ts";
import { checkResource, type PublisherOptions } from "./publish-options.ts";
import { Quarantine } from "./quarantine.ts";
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

interface PartState {
  readonly quarantine: Quarantine;
  /** `desiredText` of the last good write; undefined: not known to be there. */
  applied: string | undefined;
  /** What the last write of this agent or its predecessor carried; what no plugin says any more is ours to remove. */
  published: string;
}

/** What plugins want of one part. */
interface Wish {
  contents: ReadonlyMap<string, PluginContent>;
  merged: MergedObject | undefined;
  text: string;
}

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
  readonly #parts: Record<ApplyPart, PartState> = {
    main: { quarantine: new Quarantine(), applied: undefined, published: "" },
    status: { quarantine: new Quarantine(), applied: undefined, published: "" },
  };
  readonly #failures = new Backoff({ baseMs: 250, maxMs: 30_000, jitter: 0.3 });
  readonly #ownership: Ownership;
  #remote: RemoteObject | undefined;
  #merged: MergedObject | undefined;
  #writes = 0;
  #isBusy = false;
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
  }

  /** Takes over what a predecessor published. */
  restore({ part, body }: PublishedPart): void {
    if (part === "main" || part === "status") this.#parts[part].published = body;
  }

  /**
   * Writes the part that needs it. "more": another write is needed; "done": nothing is left to write.
   * Throws what the API server, or the way to it, has against it.
   */
  async writeNext(signal: AbortSignal, watchSignal: AbortSignal): Promise<"done" | "more"> {
    const since = this.changedAt;
    const before = this.#writes;
    // What changes from here on counts as a change of its own, and wakes the queue by itself.
    this.changedAt = undefined;
    this.#isBusy = true;
    try {
      const outcome = await this.#writePart(signal, watchSignal);
      if (outcome === "more") this.changedAt = since ?? this.changedAt;
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

  async #writePart(signal: AbortSignal, watchSignal: AbortSignal): Promise<"done" | "more"> {
    const { client, clock, contents, metrics, settings, beforeWrite } = this.#options;
    if (clock.monotonic() - this.lastWriteAt >= settings().resyncInterval) {
      for (const part of applyParts) this.#parts[part].applied = undefined;
    }
    const all = contents();
    const wishes = this.#wishes(all);
    this.#merged = wishes.main.merged;
    metrics.conflicts.set({ object: this.object }, this.#merged?.conflicts.length ?? 0);
    const pending = applyParts.filter((part) => this.#isPending(part, wishes[part]));
    const [part] = pending;
    if (!part) return "done";
    this.writing = part;

    const resource = checkResource(await client.resolve(this.#kind, { signal }), this.object);
    this.#remote = new RemoteObject(resource, this.#isNode, this.#options);
    if (!this.#merged && !(await this.#remote.read(signal))) {
      for (const each of applyParts) this.#forget(each);
      return "done";
    }
    beforeWrite();
    await this.#writeOrIsolate(part, wishes[part], all, signal);
    this.#watch(resource, watchSignal);
    return pending.length > 1 ? "more" : "done";
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
    const main = this.#wish("main", all);
    const contents = this.#parts.status.quarantine.filter(all);
    if (contents !== main.contents) return { main, status: this.#wish("status", all) };
    return { main, status: { ...main, text: desiredText(main.merged, "status") } };
  }

  #wish(part: ApplyPart, all: ReadonlyMap<string, PluginContent>): Wish {
    const contents = this.#parts[part].quarantine.filter(all);
    const merged = mergeObject(this.object, contents);
    return { contents, merged, text: desiredText(merged, part) };
  }

  #isPending(part: ApplyPart, { merged, text }: Wish): boolean {
    const { applied, published } = this.#parts[part];
    if (applied !== undefined) return text !== applied;
    // The status can only be written to an object that is there; the main part makes it.
    if (part === "main" && merged && !this.#isNode) return true;
    return text !== "" || published !== "";
  }

  async #writeOrIsolate(
    part: ApplyPart,
    first: Wish,
    all: ReadonlyMap<string, PluginContent>,
    signal: AbortSignal,
  ): Promise<void> {
    const { quarantine } = this.#parts[part];
    let wish = first;
    try {
      await this.#write(part, wish.text, signal);
    } catch (error) {
      if (codeOf(error) !== "invalid" || !wish.merged) throw error;
      if (!(await this.#isolate(part, all, wish.merged.plugins, signal))) throw error;
      wish = this.#wish(part, all);
      await this.#write(part, wish.text, signal);
    }
    quarantine.accept(wish.contents);
    const refused = applyParts.reduce((sum, each) => sum + this.#parts[each].quarantine.refusals.size, 0);
    this.#options.metrics.quarantined.set({ object: this.object }, refused);
  }

  async #write(part: ApplyPart, text: string, signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#options;
    this.lastWriteAt = clock.monotonic();
    const before = this.#parts[part].published;
    // Recorded ahead: whoever dies between the write and its record leaves nothing behind that nobody removes.
    if (before === "") this.#record(part, text);
    const answer = await this.#remote!.apply({ part, text, before }, signal);
    this.lastWriteAt = clock.monotonic();
    this.#writtenAt = clock.now();
    this.#writes++;
    metrics.writes.inc({ object: this.object, part, result: "ok" });
    this.#ownership.wrote(part, answer);
    this.#parts[part].applied = text;
    this.#record(part, text);
  }

  #record(part: ApplyPart, text: string): void {
    const { clock, log, store } = this.#options;
    const state = this.#parts[part];
    if (state.published === text) return;
    state.published = text;
    try {
      if (text === "") store.dropPublished(this.object, part);
      else store.savePublished({ object: this.object, part, body: text, at: clock.now() });
    } catch (error) {
      // The reporter checkpoint's health check tells of a disk that is full.
      log.warn({ err: error, object: this.object }, "what was published can't be recorded");
    }
  }

  #forget(part: ApplyPart): void {
    this.#parts[part].applied = "";
    this.#record(part, "");
  }

  async #isolate(
    part: ApplyPart,
    all: ReadonlyMap<string, PluginContent>,
    contributors: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { log, notify } = this.#options;
    const { quarantine } = this.#parts[part];
    const found = await quarantine.isolate(all, contributors, async (contents) => {
      const text = desiredText(mergeObject(this.object, contents), part);
      await this.#remote!.tryOut({ part, text, before: this.#parts[part].published }, signal);
    });
    for (const plugin of found) {
      const reason = quarantine.refusals.get(plugin)?.message ?? "";
      log.error(
        { plugin, object: this.object, reason },
        "API server refuses a plugin's content: its last good content stays, the other plugins are published",
      );
      notify(
        "ReportRefused",
        `The API server refuses what plugin ${plugin} reports on ${this.object}: ${reason}`,
      );
    }
    return found.length > 0;
  }

  #watch(resource: ApiResource, signal: AbortSignal): void {
    if (this.watching || signal.aborted) return;
    const { nodeName, log } = this.#options;
    const watcher = this.#options.watch(resource, nodeName, {
      onReplace: (objects) => this.#saw(objects.find(({ metadata }) => metadata.name === nodeName)),
      onUpsert: (object) => this.#saw(object),
      onDelete: () => this.#saw(undefined),
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
