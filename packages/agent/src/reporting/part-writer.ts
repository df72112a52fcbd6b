import type { KubeObject } from "@nodekeeper/core/kube";
import { codeOf, inTurns, type Steps } from "@nodekeeper/core/lib";
import { type ApplyPart, type Desired, desiredOf } from "./bodies.ts";
import type { Contents } from "./content.ts";
import { LastGoodRecord } from "./last-good.ts";
import { type MergedObject, mergeObject, mergingObject } from "./merge.ts";
import { ownedFields } from "./owned-values.ts";
import type { PublisherOptions } from "./publish-options.ts";
import { Quarantine } from "./quarantine.ts";
import type { RemoteObject } from "./remote-object.ts";
import { ownsTaintList, taintsOf } from "./taints.ts";

/** After an outage all nodes write at nearly one time. They must not do so again each interval ever after. */
const RESYNC_JITTER = 0.3;

/** The desired content of one part and the contents it was merged from. */
export interface DesiredPart {
  contents: Contents;
  merged: MergedObject | undefined;
  desired: Desired;
}

/** Callbacks for writes. */
export interface WriteListener {
  /** Called before a request is sent. */
  onTry(): void;
  onWritten(part: ApplyPart, answer: KubeObject): void;
}

/** Writes one part of one object, and tracks what the server has. */
export class PartWriter {
  readonly part: ApplyPart;
  readonly quarantine: Quarantine;
  readonly #object: string;
  readonly #options: PublisherOptions;
  readonly #listener: WriteListener;
  /** `Desired.text` of the last successful write; undefined if the server's state is unknown. */
  applied: string | undefined;
  // Monotonic time.
  #appliedAt = Number.NEGATIVE_INFINITY;
  // The part of the resync interval that passes before the next resync: not all nodes at one time.
  #resyncShare = 1;
  // Whether the server's last response contained fields of the agent, to be removed if no plugin reports them.
  #owns = false;
  #ownsTaints = false;
  readonly #lastGood: LastGoodRecord;

  constructor(part: ApplyPart, object: string, options: PublisherOptions, listener: WriteListener) {
    this.part = part;
    this.#object = object;
    this.#options = options;
    this.#listener = listener;
    this.quarantine = new Quarantine(options.clock);
    this.#lastGood = new LastGoodRecord(object, part, options);
  }

  /** Whether the server has fields of this part that this or an earlier agent process applied. */
  get owns(): boolean {
    return this.#owns;
  }

  /** Records which fields of the object the agent owns; undefined if the object does not exist. */
  saw(live: KubeObject | undefined): void {
    const { fieldManager } = this.#options;
    this.#owns = live !== undefined && ownedFields(live, fieldManager, this.part) !== "";
    this.#ownsTaints = this.part === "main" && live !== undefined && ownsTaintList(live, fieldManager);
  }

  /** Restores the last known good contents of quarantined plugins, as messages by plugin. */
  restoreLastGood(messages: ReadonlyMap<string, Uint8Array>): void {
    this.quarantine.restore(this.#lastGood.restore(messages));
  }

  /** Marks the server's state as unknown if the last write is older than a part of this interval. Returns whether it did. */
  expire(resyncMs: number): boolean {
    if (this.applied === undefined || this.expiresInMs(resyncMs) > 0) return false;
    this.applied = undefined;
    return true;
  }

  /** Milliseconds until `expire` marks the server's state as unknown; the interval if it is already. */
  expiresInMs(resyncMs: number): number {
    if (this.applied === undefined) return resyncMs;
    const ageMs = this.#options.clock.monotonic() - this.#appliedAt;
    return Math.max(resyncMs * this.#resyncShare - ageMs, 0);
  }

  /** Computes the desired content from all plugins' contents, without quarantined ones. */
  *computingDesired(all: Contents): Steps<DesiredPart> {
    const contents = this.quarantine.filter(all);
    const merged = yield* mergingObject(this.#object, contents, this.#options.lost());
    yield;
    return { contents, merged, desired: desiredOf(merged, this.part) };
  }

  /** Writes the desired content. If the server rejects it, the plugins responsible are quarantined and it is retried. */
  async write(remote: RemoteObject, first: DesiredPart, all: Contents, signal: AbortSignal): Promise<void> {
    let part = first;
    try {
      await this.#apply(remote, part.desired, signal);
    } catch (error) {
      if (codeOf(error) !== "invalid" || !part.merged) throw error;
      if (!(await this.#isolate(remote, all, part.merged.plugins, signal))) throw error;
      this.#lastGood.save(this.quarantine.lastGood);
      part = await inTurns(this.computingDesired(all), this.#options.turns);
      await this.#apply(remote, part.desired, signal);
    }
    this.quarantine.accept(part.contents);
    this.#lastGood.save(this.quarantine.lastGood);
  }

  /** Records that the object does not exist and has no desired content. */
  forget(): void {
    this.saw(undefined);
    this.#applied("");
  }

  async #apply(remote: RemoteObject, { fields, text }: Desired, signal: AbortSignal): Promise<void> {
    this.#listener.onTry();
    const ownsTaints = this.#ownsTaints;
    // If the response is lost, the server may have applied the taints.
    this.#ownsTaints ||= this.part === "main" && taintsOf(fields).length > 0;
    const answer = await remote.apply({ part: this.part, fields, ownsTaints }, signal);
    this.saw(answer);
    this.#listener.onWritten(this.part, answer);
    this.#applied(text);
  }

  #applied(text: string): void {
    this.applied = text;
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
    const { log, notify, lost } = this.#options;
    const object = this.#object;
    const found = await this.quarantine.isolate(all, contributors, async (contents) => {
      const { fields } = desiredOf(mergeObject(object, contents, lost()), this.part);
      await remote.tryOut({ part: this.part, fields, ownsTaints: this.#ownsTaints }, signal);
    });
    for (const plugin of found) {
      const reason = this.quarantine.refusals.get(plugin)?.message ?? "";
      log.error(
        { errorId: "NK1802", plugin, object, reason },
        "API server rejected the content of a plugin, which is quarantined; its last known good content stays published",
      );
      notify(
        "ReportRefused",
        `The API server rejected the report of plugin ${plugin} for ${object}: ${reason}`,
      );
    }
    return found.length > 0;
  }
}
