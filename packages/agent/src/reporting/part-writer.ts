import { ReportQuarantined } from "@nodekeeper/api/errors";
import { ApiStatusError, type KubeObject } from "@nodekeeper/core/kube";
import { codeOf, inTurns, isTransient, type Steps } from "@nodekeeper/core/lib";
import { type ApplyPart, type Desired, desiredOf } from "./bodies.ts";
import type { Contents } from "./content.ts";
import type { PublishContext } from "./context.ts";
import { LastGoodRecord } from "./last-good.ts";
import { type MergedObject, mergeObject, mergingObject } from "./merge.ts";
import { ownedFields } from "./owned-values.ts";
import { Quarantine } from "./quarantine.ts";
import type { RemoteObject } from "./remote-object.ts";
import { ownsTaintList, taintsOf } from "./taints.ts";

// After an outage, all nodes write at nearly the same time. The jitter spreads their later resyncs.
const RESYNC_JITTER = 0.3;

// A write whose response was lost may still be on its way and overwrite a later one. kube-apiserver ends requests after
// 60 s (--request-timeout).
const LONGEST_REQUEST_MS = 60_000;

/** Desired content of one part and the contents it was merged from. */
export interface DesiredPart {
  contents: Contents;
  merged: MergedObject | undefined;
  desired: Desired;
}

/** Writes one part of an object and tracks the server's state. */
export class PartWriter {
  readonly part: ApplyPart;
  readonly quarantine: Quarantine;
  readonly #object: string;
  readonly #options: PublishContext;
  #written: string | undefined;
  // Monotonic milliseconds.
  #appliedAt = Number.NEGATIVE_INFINITY;
  // Fraction of the resync interval after which the next resync is due.
  #resyncShare = 1;
  /** When no earlier write can arrive any more. Undefined if the outcome of each write is known. */
  #settledAt: number | undefined;
  // Whether the server's last response contained fields of the agent, which are removed if no plugin reports them.
  #owns = false;
  #ownsTaints = false;
  readonly #lastGood: LastGoodRecord;

  constructor(part: ApplyPart, object: string, options: PublishContext) {
    this.part = part;
    this.#object = object;
    this.#options = options;
    this.quarantine = new Quarantine(options.clock);
    this.#lastGood = new LastGoodRecord(object, part, options);
  }

  /** `Desired.text` of the last successful write. Undefined if the server's state is unknown. */
  get applied(): string | undefined {
    return this.#written;
  }

  /** Marks the server's state as unknown, so that the part is written again. */
  invalidate(): void {
    this.#written = undefined;
  }

  /**
   * Marks the server's state as unknown because another client, or an earlier agent process, has changed it. The object
   * may have fields of the agent that were withdrawn.
   */
  contradict(): void {
    this.#written = undefined;
    this.#owns = true;
  }

  /** Whether the server has fields of this part that this or an earlier agent process applied. */
  get owns(): boolean {
    return this.#owns;
  }

  /** Records which fields of the object the agent owns. `live` is undefined if the object does not exist. */
  saw(live: KubeObject | undefined): void {
    const { fieldManager } = this.#options;
    this.#owns = live !== undefined && ownedFields(live, fieldManager, this.part) !== "";
    this.#ownsTaints = this.part === "main" && live !== undefined && ownsTaintList(live, fieldManager);
  }

  /** Restores the last known good contents of quarantined plugins, given as messages by plugin. */
  restoreLastGood(messages: ReadonlyMap<string, Uint8Array>): void {
    this.quarantine.restore(this.#lastGood.restore(messages));
  }

  /**
   * Marks the server's state as unknown if the last write is older than the interval, less its jitter, or if an earlier
   * write may have arrived after it. Returns whether it did.
   */
  expire(resyncMs: number): boolean {
    if (this.#written === undefined || this.expiresInMs(resyncMs) > 0) return false;
    this.#written = undefined;
    if (this.#settledAt === undefined || this.#options.clock.monotonic() < this.#settledAt) return true;
    this.#settledAt = undefined;
    // Also after everything was withdrawn: fields of a write that arrived late would stay.
    this.contradict();
    return true;
  }

  /** Returns the milliseconds until `expire` takes effect, or the interval if the server's state is unknown. */
  expiresInMs(resyncMs: number): number {
    if (this.#written === undefined) return resyncMs;
    const now = this.#options.clock.monotonic();
    const dueAt = Math.min(
      this.#appliedAt + resyncMs * this.#resyncShare,
      this.#settledAt ?? Number.POSITIVE_INFINITY,
    );
    return Math.max(dueAt - now, 0);
  }

  /** Computes the desired content from all plugins' contents except quarantined ones. */
  *computingDesired(all: Contents): Steps<DesiredPart> {
    const contents = this.quarantine.filter(all);
    const merged = yield* mergingObject(this.#object, contents, this.#options.reports.lost());
    yield;
    return { contents, merged, desired: desiredOf(merged, this.part) };
  }

  /**
   * Writes the desired content and returns the object. If the server rejects the content, the responsible plugins are
   * quarantined and the write is retried.
   */
  async write(
    remote: RemoteObject,
    first: DesiredPart,
    all: Contents,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    let part = first;
    let answer: KubeObject;
    try {
      answer = await this.#apply(remote, part.desired, signal);
    } catch (error) {
      if (codeOf(error) !== "invalid" || !part.merged) throw error;
      if (!(await this.#isolate(remote, all, part.merged.plugins, signal))) throw error;
      this.#lastGood.save(this.quarantine.lastGood);
      part = await inTurns(this.computingDesired(all), this.#options.turns);
      answer = await this.#apply(remote, part.desired, signal);
    }
    this.quarantine.accept(part.contents);
    this.#lastGood.save(this.quarantine.lastGood);
    return answer;
  }

  /** Records that the object does not exist and has no desired content. */
  forget(): void {
    this.saw(undefined);
    this.#applied("");
  }

  async #apply(remote: RemoteObject, { fields, text }: Desired, signal: AbortSignal): Promise<KubeObject> {
    const ownsTaints = this.#ownsTaints;
    // If the response is lost, the server may still have applied the taints.
    this.#ownsTaints ||= this.part === "main" && taintsOf(fields).length > 0;
    const answer = await remote.apply({ part: this.part, fields, ownsTaints }, signal).catch((error) => {
      this.#failed(error, text);
      throw error;
    });
    this.saw(answer);
    this.#applied(text);
    return answer;
  }

  // Without a response of the API server, it is not known whether and when the write is applied.
  #failed(error: unknown, text: string): void {
    if (error instanceof ApiStatusError || !isTransient(codeOf(error))) return;
    const { clock, random = Math.random } = this.#options;
    this.#settledAt = clock.monotonic() + LONGEST_REQUEST_MS * (1 + RESYNC_JITTER * random());
    this.#owns ||= text !== "";
  }

  #applied(text: string): void {
    this.#written = text;
    const { clock, random = Math.random } = this.#options;
    this.#appliedAt = clock.monotonic();
    this.#resyncShare = 1 - RESYNC_JITTER * random();
  }

  async #isolate(
    remote: RemoteObject,
    all: Contents,
    contributors: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { log, notify, reports } = this.#options;
    const object = this.#object;
    const found = await this.quarantine.isolate(all, contributors, async (contents) => {
      const { fields } = desiredOf(mergeObject(object, contents, reports.lost()), this.part);
      await remote.tryOut({ part: this.part, fields, ownsTaints: this.#ownsTaints }, signal);
    });
    for (const plugin of found) {
      const reason = this.quarantine.refusals.get(plugin)?.message ?? "";
      log.error(
        { errorId: ReportQuarantined.id, plugin, object, reason },
        this.quarantine.lastGood.has(plugin)
          ? "API server rejected the content of a plugin, which is quarantined; its last known good content stays published"
          : "API server rejected the content of a plugin, which is quarantined; it has no last known good content",
      );
      notify(
        "ReportRefused",
        `The API server rejected the report of plugin ${plugin} for ${object}: ${reason}`,
      );
    }
    return found.length > 0;
  }
}
