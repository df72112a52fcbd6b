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
import {
  type ApplyPart,
  applyBody,
  applyParts,
  desiredText,
  keepForeignTaints,
  ownedFields,
  taintsIn,
} from "./bodies.ts";
import type { PluginContent } from "./content.ts";
import { kindKey, node } from "./kinds.ts";
import { type MergedObject, mergeObject } from "./merge.ts";
import { checkResource, type PublisherOptions } from "./publish-options.ts";
import { Quarantine } from "./quarantine.ts";

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
  /** `desiredText` of the last good write; undefined: not known to be there. */
  applied: string | undefined;
  /** The field set that the server said we own after it. */
  owned: string | undefined;
  /** What the last write of this agent or its predecessor carried, for telling own taints from foreign ones. */
  published: string;
}

// Newer content does not mend these; of other failures it may, so that it is tried at once.
const serverTrouble: ReadonlySet<ErrorCode> = new Set(["unavailable", "throttled", "deadline"]);

// A foreign edit is looked at again after this: our own write may just be on its way through the watch.
const SUSPICION_MS = 400;

/** Writes one object. The publisher calls `writeNext` for one object never twice at once. */
export class ObjectWriter {
  readonly object: string;
  readonly #kind: GroupVersionKind;
  readonly #options: PublisherOptions;
  readonly #wake: () => void;
  readonly #parts: Record<ApplyPart, PartState> = {
    main: { applied: undefined, owned: undefined, published: "" },
    status: { applied: undefined, owned: undefined, published: "" },
  };
  readonly #quarantine = new Quarantine();
  readonly #failures: Backoff;
  readonly #repairs: Backoff;
  #resource: ApiResource | undefined;
  #live: { uid: string | undefined; owned: Record<ApplyPart, string> } | undefined;
  #merged: MergedObject | undefined;
  #writtenAt: number | undefined;
  #writes = 0;
  #repairedAt = Number.NEGATIVE_INFINITY;
  #suspicion = false;

  /** Monotonic: since when there is something to write. */
  changedAt: number | undefined;
  /** Monotonic. */
  lastWriteAt = Number.NEGATIVE_INFINITY;
  /** Monotonic: a server in trouble is left alone until then, whatever changes meanwhile. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  lastError: string | undefined;
  /** The part that is being written, or was last. */
  writing: ApplyPart = "main";
  lastErrorCode: ErrorCode | undefined;
  /** Ends when the watch of the object has ended. */
  watching: Promise<void> = Promise.resolve();
  /** Says whether the object's watch works; undefined before the first write. */
  watchHealth: HealthCheck | undefined;

  constructor(kind: GroupVersionKind, object: string, options: PublisherOptions, wake: () => void) {
    this.#kind = kind;
    this.object = object;
    this.#options = options;
    this.#wake = wake;
    this.#failures = new Backoff({ baseMs: 250, maxMs: 30_000, jitter: 0.3 });
    this.#repairs = new Backoff({ baseMs: 500, maxMs: 60_000 });
  }

  /** Takes over what a predecessor published: it is ours to remove when no plugin says it any more. */
  restore({ part, body }: PublishedPart): void {
    if (part === "main" || part === "status") this.#parts[part].published = body;
  }

  /** Writes the part that needs it. "more": the other one needs it too; "done": nothing is left to write. */
  async writeNext(signal: AbortSignal, watchSignal: AbortSignal): Promise<"done" | "more"> {
    const { client, clock, contents, metrics, settings } = this.#options;
    if (clock.monotonic() - this.lastWriteAt >= settings().resyncInterval) {
      for (const part of applyParts) this.#parts[part].applied = undefined;
    }
    const all = this.#quarantine.filter(contents());
    const merged = mergeObject(this.object, all);
    this.#merged = merged;
    metrics.conflicts.set({ object: this.object }, merged?.conflicts.length ?? 0);
    metrics.quarantined.set({ object: this.object }, this.#quarantine.refusals.size);

    const pending = applyParts.filter((part) => this.#needsWrite(part, merged));
    const part = pending[0];
    if (!part) return "done";
    this.writing = part;

    this.#resource = checkResource(await client.resolve(this.#kind, { signal }), this.object);
    if (!merged && !(await this.#exists(signal))) {
      for (const each of applyParts) this.#forget(each);
      return "done";
    }
    this.#options.beforeWrite();
    const startedAt = this.changedAt;
    try {
      await this.#write(part, desiredText(merged, part), signal, watchSignal);
    } catch (error) {
      if (codeOf(error) === "invalid" && merged && (await this.#isolate(all, part, merged, signal)))
        return "more";
      throw error;
    }
    this.#quarantine.accept(all);
    const more = pending.length > 1 || desiredText(this.#mergedNow(), part) !== this.#parts[part].applied;
    if (startedAt !== undefined && this.changedAt === startedAt && !more) {
      metrics.delay.observe((this.lastWriteAt - startedAt) / 1000);
    }
    return more ? "more" : "done";
  }

  succeeded(): void {
    this.#failures.reset();
    this.lastError = undefined;
    if (!applyParts.some((part) => this.#needsWrite(part, this.#mergedNow()))) this.changedAt = undefined;
  }

  /** Records a failure; answers how long to wait before the next try, milliseconds. */
  failed(error: unknown): number {
    const { clock } = this.#options;
    this.lastError = messageOf(error);
    this.lastErrorCode = codeOf(error);
    this.changedAt ??= clock.monotonic();
    this.lastWriteAt = clock.monotonic();
    const asked = error instanceof NodekeeperError ? (error.retryAfterMs ?? 0) : 0;
    const wait = Math.max(this.#failures.next(), Math.min(asked, 300_000));
    if (serverTrouble.has(this.lastErrorCode)) this.pausedUntil = clock.monotonic() + wait;
    return wait;
  }

  status(): ObjectStatus {
    const refusals = [...this.#quarantine.refusals].map(([plugin, { message }]) => [plugin, message]);
    return {
      object: this.object,
      plugins: this.#merged?.plugins ?? [],
      conflicts: this.#merged?.conflicts ?? [],
      quarantined: Object.fromEntries(refusals),
      writes: this.#writes,
      lastWriteAt: this.#writtenAt,
      pending: this.changedAt !== undefined,
      lastError: this.lastError,
    };
  }

  #mergedNow(): MergedObject | undefined {
    return mergeObject(this.object, this.#quarantine.filter(this.#options.contents()));
  }

  #needsWrite(part: ApplyPart, merged: MergedObject | undefined): boolean {
    const { applied, published } = this.#parts[part];
    const wish = desiredText(merged, part);
    if (applied !== undefined) return wish !== applied;
    // The status can only be written to an object that is there; the main part makes it.
    if (part === "main" && merged && !this.#isNode()) return true;
    return wish !== "" || published !== "";
  }

  async #write(part: ApplyPart, text: string, signal: AbortSignal, watchSignal: AbortSignal): Promise<void> {
    const { client, clock, fieldManager, metrics, store, nodeName } = this.#options;
    const state = this.#parts[part];
    const body = await this.#body(part, text, signal);
    const options = { force: true, signal, ...(part === "status" ? { subresource: "status" } : {}) };
    this.lastWriteAt = clock.monotonic();
    const answer = await client.apply(this.#resource!, body, options);
    this.lastWriteAt = clock.monotonic();
    this.#writtenAt = clock.now();
    this.#writes++;
    metrics.writes.inc({ object: this.object, part, result: "ok" });
    state.applied = text;
    state.owned = ownedFields(answer, fieldManager, part);
    state.published = text;
    try {
      if (text === "") store.dropPublished(this.object, part);
      else store.savePublished({ object: this.object, part, body: text, at: clock.now() });
    } catch (error) {
      // The reporter checkpoint's health check tells of a disk that is full.
      this.#options.log.warn({ err: error, object: this.object }, "what was published can't be recorded");
    }
    this.#watch(nodeName, watchSignal);
  }

  async #body(part: ApplyPart, text: string, signal: AbortSignal): Promise<KubeObject> {
    const { nodeName, managedTaintPrefixes } = this.#options;
    const now = taintsIn(text);
    const before = taintsIn(this.#parts[part].published);
    const hasTaints = now.length > 0 || before.length > 0;
    if (!hasTaints && !this.#isNode()) return applyBody(this.#kind, text, { name: nodeName });
    const live = await this.#read(signal);
    // An apply would make a Node that is not there. With a uid it fails instead.
    if (this.#isNode() && !live)
      throw new NodekeeperError("notFound", `Node ${nodeName} does not exist (yet)`);
    const uid = live?.metadata.uid;
    const body = applyBody(this.#kind, text, { name: nodeName, ...(this.#isNode() && uid ? { uid } : {}) });
    if (hasTaints && live)
      keepForeignTaints(body, live, { now, before, managedPrefixes: managedTaintPrefixes });
    return body;
  }

  #isNode(): boolean {
    return this.object === kindKey(node);
  }

  async #read(signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#options.client.get(this.#resource!, this.#options.nodeName, { signal });
    } catch (error) {
      if (codeOf(error) === "notFound") return undefined;
      throw error;
    }
  }

  async #exists(signal: AbortSignal): Promise<boolean> {
    return (await this.#read(signal)) !== undefined;
  }

  #forget(part: ApplyPart): void {
    this.#parts[part] = { applied: "", owned: undefined, published: "" };
    this.#options.store.dropPublished(this.object, part);
  }

  async #isolate(
    all: ReadonlyMap<string, PluginContent>,
    part: ApplyPart,
    merged: MergedObject,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client, log, notify } = this.#options;
    const found = await this.#quarantine.isolate(all, merged.plugins, async (contents) => {
      const body = await this.#body(part, desiredText(mergeObject(this.object, contents), part), signal);
      const options = {
        force: true,
        dryRun: true,
        signal,
        ...(part === "status" ? { subresource: "status" } : {}),
      };
      await client.apply(this.#resource!, body, options);
    });
    if (!found) return false;
    for (const [plugin, { message }] of this.#quarantine.refusals) {
      log.error(
        { plugin, object: this.object, reason: message },
        "API server refuses a plugin's content: its last good content stays, the other plugins are published",
      );
      notify(
        "ReportRefused",
        `The API server refuses what plugin ${plugin} reports on ${this.object}: ${message}`,
      );
    }
    return true;
  }

  #watch(name: string, signal: AbortSignal): void {
    if (this.#live || signal.aborted) return;
    this.#live = { uid: undefined, owned: { main: "", status: "" } };
    const seen = (object: KubeObject | undefined) => this.#seen(object);
    const watcher = this.#options.watch(this.#resource!, name, {
      onReplace: (objects) => seen(objects.find((object) => object.metadata.name === name)),
      onUpsert: (object) => seen(object),
      onDelete: () => seen(undefined),
    });
    this.watchHealth = watcher.healthCheck();
    this.watching = watcher.run(signal).catch((error) => {
      if (!signal.aborted)
        this.#options.log.error({ err: error, object: this.object }, "watch of a published object ended");
    });
  }

  #seen(object: KubeObject | undefined): void {
    const { fieldManager } = this.#options;
    const live = this.#live!;
    live.uid = object?.metadata.uid;
    for (const part of applyParts) live.owned[part] = object ? ownedFields(object, fieldManager, part) : "";
    if (this.#changedByOthers().length > 0) this.#suspect();
    else if (this.#isNode() && object && this.lastError) this.#wake();
  }

  #changedByOthers(): ApplyPart[] {
    return applyParts.filter((part) => {
      const { applied, owned } = this.#parts[part];
      return applied && owned !== undefined && owned !== this.#live?.owned[part];
    });
  }

  // Looks again a little later, since the watch may be behind our own write; then applies anew.
  #suspect(): void {
    if (this.#suspicion) return;
    this.#suspicion = true;
    const { clock, log, metrics } = this.#options;
    // One who edits again and again is answered ever more slowly.
    if (clock.monotonic() - this.#repairedAt > 300_000) this.#repairs.reset();
    const wait = this.#repairs.failures === 0 ? SUSPICION_MS : SUSPICION_MS + this.#repairs.next();
    clock.after(wait, () => {
      this.#suspicion = false;
      const changed = this.#changedByOthers();
      if (changed.length === 0) return;
      if (this.#repairs.failures === 0) this.#repairs.next();
      this.#repairedAt = clock.monotonic();
      metrics.repairs.inc({ object: this.object });
      log.info(
        { object: this.object, parts: changed },
        "published fields were changed by somebody else: applying again",
      );
      for (const part of changed) this.#parts[part].applied = undefined;
      this.changedAt ??= clock.monotonic();
      this.#wake();
    });
  }
}
