import { counted } from "@nodekeeper/api/wording";
import { type KubeObject, parsingWith } from "@nodekeeper/core/kube";
import { type HealthResult, parseExactly, type Runnable, WorkQueue } from "@nodekeeper/core/lib";
import type { PublishContext, PublisherOptions, ReportingContext } from "./context.ts";
import { type ObjectStatus, ObjectWriter } from "./object-writer.ts";

const WORKERS = 4;

/**
 * Publishes the plugins' contents, one object per kind. Objects are written by server-side apply when their content
 * changed, at most once per `minWriteInterval`, always with the newest content, and retried until they succeed.
 */
export class Publisher implements Runnable {
  readonly name = "reporting-publisher";
  readonly #options: PublishContext;
  readonly #queue: WorkQueue;
  readonly #writers = new Map<string, ObjectWriter>();
  #signal: AbortSignal | undefined;

  constructor(context: ReportingContext, options: PublisherOptions) {
    // Parses numbers exactly, because values of an earlier agent process may be written back.
    const client = parsingWith(options.client, parseExactly);
    this.#options = { ...context, ...options, client };
    const { clock, log, queueMetrics } = this.#options;
    this.#queue = new WorkQueue({ name: "publisher", clock, log, metrics: queueMetrics });
  }

  /** Marks objects (`kindKey`) whose content may have changed. */
  touch(objects: Iterable<string>): void {
    for (const object of objects) {
      const writer = this.#writer(object);
      if (!writer) continue;
      writer.touch();
      this.#queue.add(object);
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const { store, policies, reports } = this.#options;
    // All kinds, because an earlier agent process may have published objects that no plugin reports now.
    const restored = reports.contents();
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

  /** Returns a published object with its content. Undefined if `status` does not list it. */
  content(object: string): { plugins: readonly string[]; content: KubeObject } | undefined {
    const writer = this.#writers.get(object);
    return writer?.isInUse ? { plugins: writer.status().plugins, content: writer.content() } : undefined;
  }

  /** Fails while an object could not be written for a minute, requires operator action, or is not watched. */
  health(): HealthResult {
    const problems = [...this.#writers.values()].flatMap((writer) => writer.problems());
    if (problems.length === 0) return { ok: true, message: counted(this.#inUse().length, "object") };
    const message = problems.map((problem) => problem.message).join("; ");
    return { ok: false, message, errorId: problems.find(({ errorId }) => errorId !== undefined)?.errorId };
  }

  #inUse(): ObjectWriter[] {
    return [...this.#writers.values()].filter((writer) => writer.isInUse);
  }

  #writer(object: string): ObjectWriter | undefined {
    let writer = this.#writers.get(object);
    if (writer) return writer;
    const policy = this.#options.policies.get(object);
    // The kind is no longer configured. Its published fields remain until an operator removes them.
    if (!policy) return undefined;
    writer = new ObjectWriter(policy, this.#options, () => this.#queue.add(object));
    this.#writers.set(object, writer);
    return writer;
  }

  async #sync(object: string, signal: AbortSignal): Promise<void> {
    const writer = this.#writer(object);
    if (!writer) return;
    const { settings, log } = this.#options;
    const { pauseMs } = writer;
    if (pauseMs > 0) {
      this.#queue.addAfter(object, pauseMs);
      return;
    }
    try {
      const outcome = await writer.writeNext(signal, this.#signal ?? signal);
      this.#queue.addAfter(object, outcome === "more" ? settings().minWriteInterval : writer.restMs());
      writer.succeeded();
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = writer.failed(error);
      log.warn({ err: error, object, retryInMs: Math.round(delayMs) }, "failed to publish object, retrying");
      this.#queue.addAfter(object, delayMs);
    }
  }
}
