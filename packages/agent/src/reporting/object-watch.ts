import { PublishedFieldContested } from "@nodekeeper/api/errors";
import type { ApiResource, KubeObject } from "@nodekeeper/core/kube";
import { type HealthCheck, type HealthResult, parseExactly, type Timer } from "@nodekeeper/core/lib";
import type { ApplyPart } from "./bodies.ts";
import type { Contents } from "./content.ts";
import { Contests } from "./contests.ts";
import type { PublishContext } from "./context.ts";
import { Ownership } from "./ownership.ts";

/** Receives the findings of a published object's watch. */
export interface ObjectFindings {
  /** The object exists. */
  onSeen(): void;
  /** The server is reachable. */
  onReached(): void;
  /** Whether a write is in progress, whose response will show the agent's current fields. */
  isWriting(): boolean;
  /** The agent's fields in these parts are not as it last read or wrote them. */
  onLost(parts: readonly ApplyPart[]): void;
}

/** Watches one published object for changes by other clients to the agent's fields. */
export class ObjectWatch {
  readonly #object: string;
  readonly #options: PublishContext;
  readonly #ownership: Ownership;
  readonly #contests: Contests;
  #confirming: Timer | undefined;
  // Resolves when the watch ends.
  #watching: Promise<void> | undefined;
  #health: HealthCheck | undefined;

  constructor(object: string, options: PublishContext) {
    this.#object = object;
    this.#options = options;
    this.#ownership = new Ownership(options.fieldManager, options.clock);
    this.#contests = new Contests(options.clock);
  }

  /** See `Ownership.expect`. */
  expect(part: ApplyPart, object: KubeObject | undefined): void {
    this.#ownership.expect(part, object);
  }

  /** Starts the watch unless it has been started. */
  start(resource: ApiResource, findings: ObjectFindings, signal: AbortSignal): void {
    if (this.#watching || signal.aborted) return;
    const { nodeName, log } = this.#options;
    const watcher = this.#options.watch({
      resource,
      fieldSelector: `metadata.name=${nodeName}`,
      // Parsed like the responses to writes, because the objects are compared with them.
      parse: parseExactly,
      handler: {
        onReplace: (objects) =>
          this.#saw(
            objects.find(({ metadata }) => metadata.name === nodeName),
            findings,
          ),
        onUpsert: (object) => this.#saw(object, findings),
        onDelete: () => this.#saw(undefined, findings),
        onOpen: () => findings.onReached(),
      },
    });
    this.#health = watcher.healthCheck();
    this.#watching = watcher.run(signal).catch((error) => {
      if (!signal.aborted)
        log.error({ err: error, object: this.#object }, "watch of a published object failed");
    });
  }

  /** Undefined before the watch is started. */
  health(): HealthResult | undefined {
    return this.#health?.check();
  }

  /** See `Contests.list`. */
  contested(contents: Contents): ReturnType<Contests["list"]> {
    return this.#contests.list(contents, this.#object);
  }

  /** Resolves when the watch has ended. */
  async close(): Promise<void> {
    this.#confirming?.cancel();
    await this.#watching;
  }

  #saw(object: KubeObject | undefined, findings: ObjectFindings): void {
    this.#confirmIn(this.#ownership.saw(object), findings);
    if (object) findings.onSeen();
  }

  #confirmIn(ms: number | undefined, findings: ObjectFindings): void {
    if (ms !== undefined) this.#confirming ??= this.#options.clock.after(ms, () => this.#confirm(findings));
  }

  // Reports the parts that still differ from what was last read or written.
  #confirm(findings: ObjectFindings): void {
    this.#confirming = undefined;
    if (findings.isWriting()) {
      this.#confirmIn(this.#ownership.confirmInMs(), findings);
      return;
    }
    const loss = this.#ownership.takeLoss();
    if (!loss) return;
    const { parts, fields, others } = loss;
    const { log, metrics, notify } = this.#options;
    const object = this.#object;
    for (const { path, writers } of this.#contests.note(fields, others)) {
      const by = writers.join(", ") || "an unknown client";
      log.warn(
        { errorId: PublishedFieldContested.id, object, path, writers },
        "another client writes a published field repeatedly",
      );
      notify(
        "FieldContested",
        `${path} of ${object} is also written by ${by}; the agent restores its value each time`,
      );
    }
    metrics.repairs.inc({ object });
    log.info({ object, parts }, "published fields are not as last read or written, applying them again");
    findings.onLost(parts);
  }
}
