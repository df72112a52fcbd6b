import type { KubeObject } from "@nodekeeper/core/kube";
import {
  codeOf,
  type ErrorId,
  type HealthResult,
  isNonRetryable,
  type Runnable,
  WorkQueue,
} from "@nodekeeper/core/lib";
import { type ObjectStatus, ObjectWriter } from "./object-writer.ts";
import type { PublisherOptions } from "./publish-options.ts";

// The readiness check fails if an object could not be written for longer.
const UNHEALTHY_AFTER_MS = 60_000;
const WORKERS = 4;

/**
 * Publishes the plugins' contents: one object for each kind, written by server-side apply when its content changed, at
 * most once per `minWriteInterval`, always with the newest content, and retried until it succeeds.
 */
export class Publisher implements Runnable {
  readonly name = "reporting-publisher";
  readonly #options: PublisherOptions;
  readonly #queue: WorkQueue;
  readonly #writers = new Map<string, ObjectWriter>();
  #signal: AbortSignal | undefined;

  constructor(options: PublisherOptions) {
    this.#options = options;
    const { clock, log, queueMetrics } = options;
    this.#queue = new WorkQueue({
      name: "publisher",
      clock,
      log,
      ...(queueMetrics ? { metrics: queueMetrics } : {}),
    });
  }

  /** Marks objects (`kindKey`) whose content may have changed. */
  touch(objects: Iterable<string>): void {
    const { clock } = this.#options;
    for (const object of objects) {
      const writer = this.#writer(object);
      if (!writer) continue;
      writer.changedAt ??= clock.monotonic();
      this.#queue.add(object);
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const { store, policies, contents } = this.#options;
    // All kinds, since an earlier agent process may have published objects that no plugin reports now.
    const restored = contents();
    for (const object of policies.keys()) this.#writer(object)?.start(restored);
    const ofPart = Map.groupBy(store.lastGood(), ({ object, part }) => `${object} ${part}`);
    for (const lastGood of ofPart.values()) {
      const { object, part } = lastGood[0]!;
      const messages = new Map(lastGood.map(({ plugin, content }) => [plugin, content]));
      this.#writer(object)?.restoreLastGood(part, messages);
    }
    for (const object of this.#writers.keys()) this.#queue.add(object);
    await this.#queue.run(signal, WORKERS, (object, scope) => this.#sync(object, scope));
    await Promise.allSettled([...this.#writers.values()].map((writer) => writer.close()));
  }

  status(): ObjectStatus[] {
    return this.#inUse().map((writer) => writer.status());
  }

  /** One of the objects of `status` as a whole; undefined where it is none of them. */
  content(object: string): { plugins: readonly string[]; content: KubeObject } | undefined {
    const writer = this.#writers.get(object);
    return writer?.isInUse ? { plugins: writer.status().plugins, content: writer.content() } : undefined;
  }

  /** Fails while an object could not be written for a minute, needs an operator's action, or is not watched. */
  health(): HealthResult {
    const now = this.#options.clock.monotonic();
    const problems: string[] = [];
    const ids: (ErrorId | undefined)[] = [];
    for (const {
      object,
      changedAt,
      lastError,
      lastErrorCode,
      lastErrorId,
      watchHealth,
    } of this.#writers.values()) {
      const waited = changedAt === undefined ? 0 : now - changedAt;
      if (lastError && (waited > UNHEALTHY_AFTER_MS || isNonRetryable(lastErrorCode ?? "internal"))) {
        problems.push(`${object} not written for ${Math.round(waited / 1000)} s: ${lastError}`);
        ids.push(lastErrorId);
      }
      const watch = watchHealth?.check();
      if (watch && !watch.ok) {
        problems.push(`${object} not watched: ${watch.message}`);
        ids.push(watch.errorId);
      }
    }
    if (problems.length === 0) return { ok: true, message: `${this.#inUse().length} objects` };
    return { ok: false, message: problems.join("; "), errorId: ids.find((id) => id !== undefined) };
  }

  #inUse(): ObjectWriter[] {
    return [...this.#writers.values()].filter((writer) => writer.isInUse);
  }

  #writer(object: string): ObjectWriter | undefined {
    let writer = this.#writers.get(object);
    if (writer) return writer;
    const policy = this.#options.policies.get(object);
    // A kind that is no longer configured: published fields stay until an operator removes them.
    if (!policy) return undefined;
    writer = new ObjectWriter(policy, this.#options, () => this.#queue.add(object));
    this.#writers.set(object, writer);
    return writer;
  }

  async #sync(object: string, signal: AbortSignal): Promise<void> {
    const writer = this.#writer(object);
    if (!writer) return;
    const { clock, settings, log, metrics } = this.#options;
    const earliest = Math.max(writer.lastWriteAt + settings().minWriteInterval, writer.pausedUntil);
    const rest = earliest - clock.monotonic();
    if (rest > 0) {
      this.#queue.addAfter(object, rest);
      return;
    }
    try {
      const outcome = await writer.writeNext(signal, this.#signal ?? signal);
      this.#queue.addAfter(object, outcome === "more" ? settings().minWriteInterval : writer.restMs());
      writer.succeeded();
    } catch (error) {
      if (signal.aborted) return;
      const code = codeOf(error);
      const delayMs = writer.failed(error);
      metrics.writes.inc({ object, part: writer.writing, result: code });
      log.warn({ err: error, object, retryInMs: Math.round(delayMs) }, "failed to publish object, retrying");
      this.#queue.addAfter(object, delayMs);
    }
  }
}
