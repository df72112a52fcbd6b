import type { Logger } from "@nodekeeper/core/lib";
import type { RuntimeMetrics } from "./metrics.ts";

/** What a runtime's answer can have that it should not. */
export type OddityKind =
  | "sandboxWithoutMetadata"
  | "sandboxWithoutUid"
  | "itemWithoutId"
  | "duplicateId"
  | "containerWithoutSandbox"
  | "containerOfNoPod"
  | "containerPodUnknown"
  | "podWithoutLabel"
  | "unknownState"
  | "invalidIp"
  | "eventOfNoPod"
  | "listTooLarge"
  | "statsOfNobody";

// A broken runtime must not fill the log; the metric counts on.
const loggedAtMost = 100;

/** Counts the oddities of a runtime, and tells the log of each once. */
export class Oddities {
  readonly #metrics: RuntimeMetrics;
  readonly #log: Logger;
  readonly #logged = new Set<string>();

  constructor(metrics: RuntimeMetrics, log: Logger) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** @param id of the sandbox, container or pod that is odd */
  report(kind: OddityKind, id: string): void {
    this.#metrics.oddities.inc({ kind });
    const key = `${kind} ${id}`;
    if (this.#logged.size >= loggedAtMost || this.#logged.has(key)) return;
    this.#logged.add(key);
    this.#log.warn({ kind, id: id.slice(0, 128) }, "odd answer of the container runtime");
  }
}
