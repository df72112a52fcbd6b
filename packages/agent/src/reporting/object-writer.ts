import {
  type ApiResource,
  ApiStatusError,
  type GroupVersionKind,
  type KubeObject,
} from "@nodekeeper/core/kube";
import {
  Backoff,
  codeOf,
  type ErrorCode,
  type HealthCheck,
  isTransient,
  LONGEST_RETRY_AFTER_MS,
  messageOf,
  NodekeeperError,
  retryPolicies,
} from "@nodekeeper/core/lib";
import { type ApplyPart, applyParts, desiredOf } from "./bodies.ts";
import { Budget, type HeldBack } from "./budget.ts";
import { type Contest, Contests } from "./contests.ts";
import { type KindPolicy, kindKey, node } from "./kinds.ts";
import { type MergedObject, mergeObject } from "./merge.ts";
import { Ownership, type OwnershipLoss } from "./ownership.ts";
import { type Contents, PartWriter, type Wish } from "./part-writer.ts";
import { Predecessor } from "./predecessor.ts";
import { checkResource, type PublisherOptions } from "./publish-options.ts";
import { RemoteObject } from "./remote-object.ts";

/** An object as the status API shows it. */
export interface ObjectStatus {
  object: string;
  plugins: readonly string[];
  conflicts: MergedObject["conflicts"];
  /** Fields that other clients write again and again. */
  contested: readonly Contest[];
  /** Fields that an earlier agent published and no known plugin reports: kept for the grace period. */
  unclaimed: readonly string[];
  /** Plugins whose content the server refuses, or has no room for, and why. */
  quarantined: Readonly<Record<string, string>>;
  /** Since the agent's start. */
  writes: number;
  /** Wall milliseconds. */
  lastWriteAt: number | undefined;
  pending: boolean;
  lastError: string | undefined;
}

/** `more`: another write is needed; `done`: nothing is left to write. */
type Outcome = "done" | "more";

// A kind of which nothing is to be published may be absent, or none of the agent's business.
const notOurs: ReadonlySet<ErrorCode> = new Set(["unsupported", "forbidden", "invalid"]);

/** Writes one object. The publisher calls `writeNext` for one object never twice at once. */
export class ObjectWriter {
  readonly object: string;
  readonly #kind: GroupVersionKind;
  readonly #options: PublisherOptions;
  readonly #wake: () => void;
  readonly #isNode: boolean;
  readonly #parts: Record<ApplyPart, PartWriter>;
  readonly #failures = new Backoff(retryPolicies.publishedObject);
  readonly #ownership: Ownership;
  readonly #predecessor: Predecessor;
  readonly #budget: Budget;
  readonly #contests: Contests;
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

  constructor(policy: KindPolicy, options: PublisherOptions, wake: () => void) {
    const { kind } = policy;
    this.#kind = kind;
    this.object = kindKey(kind);
    this.#options = options;
    this.#wake = wake;
    this.#isNode = this.object === kindKey(node);
    const { fieldManager, clock } = options;
    this.#ownership = new Ownership({ fieldManager, clock, onLost: (loss) => this.#repair(loss) });
    this.#contests = new Contests(clock);
    this.#predecessor = new Predecessor(policy, options);
    this.#budget = new Budget(this.object);
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

  /** @param restored what plugins last said as the state has it: a source of what the server holds */
  start(restored: Contents): void {
    this.#predecessor.start(restored);
  }

  /** Takes over what a predecessor published instead of refused contents: a plugin's message by its name. */
  restoreStandIns(part: string, messages: ReadonlyMap<string, Uint8Array>): void {
    if (part === "main" || part === "status") this.#parts[part].restoreStandIns(messages);
  }

  /** Whether the server has, or should have, anything of the agent's here. */
  get isInUse(): boolean {
    return (
      this.#merged !== undefined ||
      this.changedAt !== undefined ||
      this.lastError !== undefined ||
      this.#writes > 0 ||
      applyParts.some((part) => this.#parts[part].owns)
    );
  }

  /** Writes the part that needs it. Throws what the API server, or the way to it, has against it. */
  async writeNext(signal: AbortSignal, watchSignal: AbortSignal): Promise<Outcome> {
    const since = this.changedAt;
    const before = this.#writes;
    // What changes from here on counts as a change of its own, and wakes the queue by itself.
    this.changedAt = undefined;
    this.#isBusy = true;
    try {
      const outcome = await this.#writePart(signal, watchSignal);
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

  async #writePart(signal: AbortSignal, watchSignal: AbortSignal): Promise<Outcome> {
    const { metrics, settings, beforeWrite } = this.#options;
    const expired = applyParts.filter((part) => this.#parts[part].expire(settings().resyncInterval));
    if (expired.length > 0) this.#budget.reset();
    const remote = this.#predecessor.isKnown ? undefined : await this.#meetPredecessor(signal);
    if (!this.#predecessor.isKnown) return "done";
    const all = this.#contents();
    const wishes = this.#wishes(all);
    this.#merged = wishes.main.merged;
    metrics.conflicts.set({ object: this.object }, this.#merged?.conflicts.length ?? 0);
    const pending = applyParts.filter((part) => this.#isPending(part, wishes[part]));
    const [part] = pending;
    metrics.quarantined.set({ object: this.object }, Object.keys(this.#quarantined()).length);
    if (!part) return "done";
    this.writing = part;

    const target = remote ?? this.#remote(await this.#resolve(signal));
    if (!this.#merged && !(await target.read(signal))) {
      for (const each of applyParts) this.#parts[each].forget();
      return "done";
    }
    // Before the write: it is how the end of a Node's absence is learned.
    this.#watch(target.resource, watchSignal);
    beforeWrite();
    await this.#parts[part].write(target, wishes[part], all, signal);
    if (pending.length === 1) this.#budget.took(all);
    return pending.length > 1 ? "more" : "done";
  }

  /**
   * Reads what agents before this one published, which comes before the first write. Where there is nothing to publish,
   * a kind that is not served, or not to be read, is none of ours: the next resync looks again.
   */
  async #meetPredecessor(signal: AbortSignal): Promise<RemoteObject | undefined> {
    const isWanted = mergeObject(this.object, this.#options.contents()) !== undefined;
    try {
      const remote = this.#remote(await this.#resolve(signal));
      const live = await remote.read(signal);
      for (const part of applyParts) this.#parts[part].saw(live);
      this.#predecessor.meet(live, (contents) => this.#budget.publishable(contents).contents);
      return remote;
    } catch (error) {
      if (!isWanted && notOurs.has(codeOf(error))) return undefined;
      throw error;
    }
  }

  async #resolve(signal: AbortSignal): Promise<ApiResource> {
    return checkResource(await this.#options.client.resolve(this.#kind, { signal }), this.object);
  }

  #remote(resource: ApiResource): RemoteObject {
    return new RemoteObject(resource, this.#isNode, this.#options);
  }

  #contents(): Contents {
    const { contents, held } = this.#budget.publishable(this.#options.contents());
    for (const each of held) if (each.isNew) this.#reportHeld(each);
    return this.#predecessor.addTo(contents);
  }

  #reportHeld({ plugin, message }: HeldBack): void {
    const { log, notify, metrics } = this.#options;
    const { object } = this;
    metrics.heldBack.inc({ plugin });
    log.error(
      { plugin, object, reason: message },
      "a plugin's content is too large for the object: its last good content stays, the other plugins are published",
    );
    notify("ReportTooLarge", `What plugin ${plugin} reports on ${object} is not published: ${message}`);
  }

  /** How long until contents that are held back may be tried, or kept ones released, milliseconds; infinite where there are none. */
  heldFor(): number {
    const held = applyParts.map((part) => this.#parts[part].quarantine.heldUntil);
    const until = Math.min(...held, this.#predecessor.until);
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
    if (error instanceof ApiStatusError && error.code === "exhausted") this.#budget.shrink();
    // Without its object a status has no place: the main part makes it anew.
    if (this.lastErrorCode === "notFound") this.#parts.main.applied = undefined;
    const asked = error instanceof NodekeeperError ? (error.retryAfterMs ?? 0) : 0;
    const wait = Math.max(this.#failures.next(), Math.min(asked, LONGEST_RETRY_AFTER_MS));
    this.#isTold = asked > 0;
    // Newer content is no reason to ask the server sooner again. A refusal of the content itself is one.
    if (isTransient(this.lastErrorCode)) this.pausedUntil = now + wait;
    return wait;
  }

  status(): ObjectStatus {
    return {
      object: this.object,
      plugins: this.#merged?.plugins ?? [],
      conflicts: this.#merged?.conflicts ?? [],
      contested: this.#contests.list(this.#options.contents(), this.object),
      unclaimed: this.#predecessor.unclaimed,
      quarantined: this.#quarantined(),
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

  #quarantined(): Record<string, string> {
    const refusals = applyParts.flatMap((part) => [...this.#parts[part].quarantine.refusals]);
    const refused = refusals.map(([plugin, { message }]) => [
      plugin,
      `refused by the API server: ${message}`,
    ]);
    return Object.fromEntries([...refused, ...this.#budget.held]);
  }

  // The parts differ in what they merge only while the server refuses something.
  #wishes(all: Contents): Record<ApplyPart, Wish> {
    const main = this.#parts.main.wish(all);
    const contents = this.#parts.status.quarantine.filter(all);
    if (contents !== main.contents) return { main, status: this.#parts.status.wish(all) };
    return { main, status: { ...main, desired: desiredOf(main.merged, "status") } };
  }

  #isPending(part: ApplyPart, { merged, desired: { text } }: Wish): boolean {
    const { applied, owns } = this.#parts[part];
    if (applied !== undefined) return text !== applied;
    // The status can only be written to an object that is there; the main part makes it.
    if (part === "main" && merged && !this.#isNode) return true;
    return text !== "" || owns;
  }

  #written(part: ApplyPart, answer: KubeObject): void {
    const { clock, metrics } = this.#options;
    this.lastWriteAt = clock.monotonic();
    this.#writtenAt = clock.now();
    this.#writes++;
    metrics.writes.inc({ object: this.object, part, result: "ok" });
    this.#ownership.wrote(part, answer);
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

  // The server answers again: a wait for that ends, unless the server itself said how long.
  #reached(): void {
    if (this.#isTold || this.lastErrorCode === undefined || !isTransient(this.lastErrorCode)) return;
    this.pausedUntil = Number.NEGATIVE_INFINITY;
    this.#wake();
  }

  #repair({ parts, fields, others }: OwnershipLoss): void {
    const { clock, log, metrics, notify } = this.#options;
    for (const { path, writers } of this.#contests.note(fields, others)) {
      const by = writers.join(", ") || "a client that is not recorded";
      log.warn(
        { object: this.object, path, writers },
        "a published field is written by another client again and again",
      );
      notify(
        "FieldContested",
        `${path} of ${this.object} is also written by ${by}, and put back again and again`,
      );
    }
    metrics.repairs.inc({ object: this.object });
    log.info({ object: this.object, parts }, "another client changed published fields: applying them again");
    for (const part of parts) this.#parts[part].applied = undefined;
    this.changedAt ??= clock.monotonic();
    this.#wake();
  }
}
