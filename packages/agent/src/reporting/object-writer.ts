import { KindNotServed, ReportTooLarge } from "@nodekeeper/api/errors";
import type { ApiAnswers, Frozen } from "@nodekeeper/api/openapi";
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
  type ErrorId,
  errorIdOf,
  inTurns,
  isNonRetryable,
  isTransient,
  messageOf,
  retryAfterOf,
  retryPolicies,
  type Steps,
} from "@nodekeeper/core/lib";
import { type ApplyPart, applyBody, applyParts, desiredOf } from "./bodies.ts";
import { Budget, type OversizedContent } from "./budget.ts";
import type { Contents } from "./content.ts";
import { checkResource, type PublishContext } from "./context.ts";
import { type KindPolicy, kindKey, node } from "./kinds.ts";
import { LastGoodRecord } from "./last-good.ts";
import { type MergedObject, mergeObject } from "./merge.ts";
import { type ObjectFindings, ObjectWatch } from "./object-watch.ts";
import { type DesiredPart, PartWriter } from "./part-writer.ts";
import { Predecessor } from "./predecessor.ts";
import { RemoteObject } from "./remote-object.ts";
import { frozenTaints } from "./taints.ts";

/** Status of a published object, as shown by the JSON API. */
export type ObjectStatus = Frozen<ApiAnswers["objects"][number]>;

/** `more`: another write is needed; `done`: everything is written. */
type Outcome = "done" | "more";

// An object that could not be written for longer than this is unhealthy.
const UNHEALTHY_AFTER_MS = 60_000;

// Errors that are ignored for kinds that no plugin reports.
const ignorableIfUnused: ReadonlySet<ErrorCode> = new Set(["unsupported", "forbidden", "invalid"]);

/** Writes one object. Calls of `writeNext` must not overlap. */
export class ObjectWriter {
  readonly object: string;
  readonly #kind: GroupVersionKind;
  readonly #options: PublishContext;
  readonly #wake: () => void;
  readonly #isNode: boolean;
  readonly #parts: Record<ApplyPart, PartWriter>;
  readonly #failures = new Backoff(retryPolicies.publishedObject);
  readonly #ignored = new Backoff(retryPolicies.unreportedObject);
  // When an object that no plugin reports is read again, after a failure that was ignored.
  #readAt = Number.POSITIVE_INFINITY;
  readonly #watch: ObjectWatch;
  readonly #predecessor: Predecessor;
  readonly #budget: Budget;
  readonly #lastGood: LastGoodRecord;
  #merged: MergedObject | undefined;
  // Equals `#merged` unless some status content is quarantined.
  #mergedStatus: MergedObject | undefined;
  #writes = 0;
  #isBusy = false;
  // Whether the server requested the delay (Retry-After).
  #hasRetryAfter = false;
  #writtenAt: number | undefined;

  // Monotonic times: start of the pending write, last attempt, and next attempt after a transient failure.
  #changedAt: number | undefined;
  #lastWriteAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #lastError: { message: string; code: ErrorCode; id: ErrorId | undefined } | undefined;
  // The part that is being written or was written last.
  #writing: ApplyPart = "main";
  readonly #findings: ObjectFindings = {
    onSeen: () => this.#seen(),
    onReached: () => this.#reached(),
    isWriting: () => this.#isBusy,
    onLost: (parts) => this.#repair(parts),
  };

  constructor(policy: KindPolicy, options: PublishContext, wake: () => void) {
    const { kind } = policy;
    this.#kind = kind;
    this.object = kindKey(kind);
    this.#options = options;
    this.#wake = wake;
    this.#isNode = this.object === kindKey(node);
    this.#watch = new ObjectWatch(this.object, options);
    this.#predecessor = new Predecessor(policy, options);
    this.#budget = new Budget(this.object);
    this.#lastGood = new LastGoodRecord(this.object, "object", options);
    this.#parts = {
      main: new PartWriter("main", this.object, options),
      status: new PartWriter("status", this.object, options),
    };
  }

  /** @param restored contents from the checkpoint, from which the published fields may originate */
  start(restored: Contents): void {
    this.#predecessor.start(restored);
  }

  /** Restores the last known good contents of quarantined plugins, given as messages by plugin. */
  restoreLastGood(part: string, messages: ReadonlyMap<string, Uint8Array>): void {
    if (part === "main" || part === "status") this.#parts[part].restoreLastGood(messages);
    if (part === "object") this.#budget.restore(this.#lastGood.restore(messages));
  }

  /** Records that the content may have changed. */
  touch(): void {
    this.#changedAt ??= this.#options.clock.monotonic();
  }

  /** Milliseconds until the next attempt is allowed. Not positive if it is allowed now. */
  get pauseMs(): number {
    const { clock, settings } = this.#options;
    const earliest = Math.max(this.#lastWriteAt + settings().minWriteInterval, this.#pausedUntil);
    return earliest - clock.monotonic();
  }

  /** Returns why the object is unhealthy: not written for a minute, a non-retryable error, or a failing watch. */
  problems(): { message: string; errorId: ErrorId | undefined }[] {
    const error = this.#lastError;
    const waitedMs = this.#changedAt === undefined ? 0 : this.#options.clock.monotonic() - this.#changedAt;
    const problems = [];
    if (error && (waitedMs > UNHEALTHY_AFTER_MS || isNonRetryable(error.code))) {
      const message = `${this.object} not written for ${Math.round(waitedMs / 1000)} s: ${error.message}`;
      problems.push({ message, errorId: error.id });
    }
    const watch = this.#watch.health();
    if (watch && !watch.ok)
      problems.push({ message: `${this.object} not watched: ${watch.message}`, errorId: watch.errorId });
    return problems;
  }

  /** Whether the object has, or should have, fields of the agent. */
  get isInUse(): boolean {
    return (
      this.#merged !== undefined ||
      this.#changedAt !== undefined ||
      this.#lastError !== undefined ||
      this.#writes > 0 ||
      applyParts.some((part) => this.#parts[part].owns)
    );
  }

  /** Writes one pending part, if any. Throws the errors of the API client. */
  async writeNext(signal: AbortSignal, watchSignal: AbortSignal): Promise<Outcome> {
    const since = this.#changedAt;
    const before = this.#writes;
    // Later changes set #changedAt again and add the object to the queue.
    this.#changedAt = undefined;
    this.#isBusy = true;
    try {
      const outcome = await this.#writePart(signal, watchSignal);
      if (outcome !== "done") this.#changedAt = since ?? this.#changedAt;
      else if (since !== undefined && this.#writes > before) {
        this.#options.metrics.delay.observe((this.#lastWriteAt - since) / 1000);
      }
      return outcome;
    } catch (error) {
      this.#changedAt = since ?? this.#changedAt;
      throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  async #writePart(signal: AbortSignal, watchSignal: AbortSignal): Promise<Outcome> {
    const { metrics, settings, reports, turns } = this.#options;
    const expired = applyParts.filter((part) => this.#parts[part].expire(settings().resyncInterval));
    if (expired.length > 0) this.#budget.reset();
    const remote = this.#predecessor.isKnown ? undefined : await this.#readPredecessor(signal);
    if (!this.#predecessor.isKnown) return "done";
    const all = this.#contents();
    const desired = await inTurns(this.#computingDesired(all), turns);
    this.#merged = desired.main.merged;
    this.#mergedStatus = desired.status.merged;
    metrics.conflicts.set({ object: this.object }, this.#merged?.conflicts.length ?? 0);
    const pending = applyParts.filter((part) => this.#isPending(part, desired[part]));
    const [part] = pending;
    metrics.quarantined.set({ object: this.object }, Object.keys(this.#quarantined()).length);
    if (!part) {
      this.#budget.accepted(all);
      return "done";
    }
    this.#writing = part;

    const target = remote ?? this.#remote(await this.#resolve(signal));
    if (!this.#merged && !(await target.read(signal))) {
      for (const each of applyParts) this.#parts[each].forget();
      return "done";
    }
    // Started before the write, because it detects the creation of a missing Node.
    this.#watch.start(target.resource, this.#findings, watchSignal);
    await reports.flush();
    this.#written(
      part,
      await this.#write(part, () => this.#parts[part].write(target, desired[part], all, signal)),
    );
    if (pending.length === 1) this.#budget.accepted(all);
    return pending.length > 1 ? "more" : "done";
  }

  // An apply of the main part creates a missing object. If it is not found, the kind is no longer served.
  async #write<Answer>(part: ApplyPart, write: () => Promise<Answer>): Promise<Answer> {
    try {
      return await write();
    } catch (error) {
      if (this.#isNode || part !== "main" || codeOf(error) !== "notFound") throw error;
      throw new KindNotServed({ object: this.object }, { cause: error });
    }
  }

  /**
   * Reads the fields that earlier agent processes published, before the first write. If no plugin reports the kind,
   * errors because it is not served or not readable are ignored. An object that is not readable, for example because
   * permissions are missing for a while, may have such fields: it is read again after a delay, the others at the next
   * resync.
   */
  async #readPredecessor(signal: AbortSignal): Promise<RemoteObject | undefined> {
    const isReported = mergeObject(this.object, this.#options.reports.contents()) !== undefined;
    this.#readAt = Number.POSITIVE_INFINITY;
    try {
      const remote = this.#remote(await this.#resolve(signal));
      const live = await remote.read(signal);
      for (const part of applyParts) {
        this.#parts[part].saw(live);
        this.#watch.expect(part, live);
      }
      if (live) this.#reportFrozen(live);
      this.#predecessor.read(live, (contents) => this.#publishable(contents).contents);
      return remote;
    } catch (error) {
      const code = codeOf(error);
      if (isReported || !ignorableIfUnused.has(code)) throw error;
      if (code !== "unsupported") this.#readAt = this.#options.clock.monotonic() + this.#ignored.next();
      return undefined;
    }
  }

  async #resolve(signal: AbortSignal): Promise<ApiResource> {
    return checkResource(await this.#options.client.resolve(this.#kind, { signal }), this.object);
  }

  #remote(resource: ApiResource): RemoteObject {
    return new RemoteObject(resource, this.#isNode, this.#options);
  }

  #contents(): Contents {
    const { contents, held } = this.#publishable(this.#options.reports.contents());
    for (const each of held) if (each.isNew) this.#reportOversized(each);
    this.#lastGood.save(this.#budget.lastGood);
    return this.#predecessor.addTo(contents);
  }

  #publishable(all: Contents): ReturnType<Budget["publishable"]> {
    const published = this.#predecessor.publishedOf(all);
    this.#budget.restore(published);
    for (const part of applyParts) this.#parts[part].quarantine.restore(published);
    return this.#budget.publishable(all);
  }

  #reportOversized({ plugin, message }: OversizedContent): void {
    const { log, notify, metrics } = this.#options;
    const { object } = this;
    metrics.oversized.inc({ plugin });
    log.error(
      { errorId: ReportTooLarge.id, plugin, object, reason: message },
      "content of a plugin is too large for the object and is quarantined",
    );
    notify("ReportTooLarge", `The report of plugin ${plugin} for ${object} is not published: ${message}`);
  }

  /**
   * Returns the milliseconds until the next resync, retry of quarantined content, removal of fields of an earlier
   * agent process, or attempt to read them, whichever comes first.
   */
  restMs(): number {
    const { clock, settings } = this.#options;
    const { resyncInterval } = settings();
    const retries = applyParts.map((part) => this.#parts[part].quarantine.nextRetryAt);
    const until = Math.min(...retries, this.#predecessor.until, this.#readAt);
    const resyncs = applyParts.map((part) => this.#parts[part].expiresInMs(resyncInterval));
    return Math.min(...resyncs, Math.max(until - clock.monotonic(), 0));
  }

  succeeded(): void {
    this.#failures.reset();
    this.#lastError = undefined;
  }

  /** Records a failure. Returns the delay before the next attempt, in milliseconds. */
  failed(error: unknown): number {
    const { clock, metrics } = this.#options;
    const now = clock.monotonic();
    const code = codeOf(error);
    metrics.writes.inc({ object: this.object, part: this.#writing, result: code });
    this.#lastError = { message: messageOf(error), code, id: errorIdOf(error) };
    this.#changedAt ??= now;
    this.#lastWriteAt = now;
    if (error instanceof ApiStatusError && error.code === "exhausted") this.#budget.shrink();
    // The status subresource requires the object. Writing the main part creates it again.
    if (code === "notFound") this.#parts.main.invalidate();
    const retryAfterMs = retryAfterOf(error);
    const wait = this.#failures.next(retryAfterMs);
    this.#hasRetryAfter = retryAfterMs > 0;
    // After transient errors, changed content does not cause an earlier retry.
    if (isTransient(code)) this.#pausedUntil = now + wait;
    return wait;
  }

  status(): ObjectStatus {
    return {
      object: this.object,
      plugins: this.#merged?.plugins ?? [],
      conflicts: this.#merged?.conflicts ?? [],
      contested: this.#watch.contested(this.#options.reports.contents()),
      unclaimed: this.#predecessor.unclaimed,
      quarantined: this.#quarantined(),
      writes: this.#writes,
      lastWriteAt: this.#writtenAt,
      pending: this.#isBusy || this.#changedAt !== undefined,
      lastError: this.#lastError?.message,
    };
  }

  /** Returns the object with the fields that the agent applies, as last computed. Do not modify it. */
  content(): KubeObject {
    const { nodeName: name } = this.#options;
    const { fields: main } = desiredOf(this.#merged, "main");
    const { fields: status } = desiredOf(this.#mergedStatus, "status");
    return applyBody(this.#kind, { ...main, ...status }, { name });
  }

  /** Stops the writer's timers and waits for its watch to end. */
  async close(): Promise<void> {
    await this.#watch.close();
  }

  #quarantined(): Record<string, string> {
    const refusals = applyParts.flatMap((part) => [...this.#parts[part].quarantine.refusals]);
    const refused = refusals.map(([plugin, { message }]) => [
      plugin,
      `rejected by the API server: ${message}`,
    ]);
    return Object.fromEntries([...refused, ...this.#budget.held]);
  }

  // The parts share one merge unless their quarantined contents differ.
  *#computingDesired(all: Contents): Steps<Record<ApplyPart, DesiredPart>> {
    const main = yield* this.#parts.main.computingDesired(all);
    yield;
    const contents = this.#parts.status.quarantine.filter(all);
    if (contents !== main.contents) return { main, status: yield* this.#parts.status.computingDesired(all) };
    return { main, status: { ...main, desired: desiredOf(main.merged, "status") } };
  }

  #isPending(part: ApplyPart, { merged, desired: { text } }: DesiredPart): boolean {
    const { applied, owns } = this.#parts[part];
    if (applied !== undefined) return text !== applied;
    // The status can be written only to an existing object. Writing the main part creates it.
    if (part === "main" && merged && !this.#isNode) return true;
    return text !== "" || owns;
  }

  #written(part: ApplyPart, answer: KubeObject): void {
    const { clock, metrics } = this.#options;
    this.#lastWriteAt = clock.monotonic();
    this.#writtenAt = clock.now();
    this.#writes++;
    metrics.writes.inc({ object: this.object, part, result: "ok" });
    this.#watch.expect(part, answer);
    this.#reportFrozen(answer);
  }

  #reportFrozen(live: KubeObject): void {
    const { fieldManager: manager, isFrozenTaint: isFrozen, onFrozenTaints } = this.#options;
    const taints = frozenTaints(live, { manager, isFrozen });
    if (taints.length > 0) onFrozenTaints?.(taints);
  }

  // The missing Node was recreated.
  #seen(): void {
    if (this.#isNode && this.#lastError?.code === "notFound") this.#wake();
  }

  // The server is reachable again. Retries immediately unless the server requested a delay.
  #reached(): void {
    if (this.#hasRetryAfter || !this.#lastError || !isTransient(this.#lastError.code)) return;
    this.#pausedUntil = Number.NEGATIVE_INFINITY;
    this.#wake();
  }

  #repair(parts: readonly ApplyPart[]): void {
    for (const part of parts) this.#parts[part].contradict();
    this.#changedAt ??= this.#options.clock.monotonic();
    this.#wake();
  }
}
