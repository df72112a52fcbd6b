import { PodNotInspectable } from "@nodekeeper/api/errors";
import type { Logger } from "@nodekeeper/core/lib";
import type { RuntimeMetrics } from "./metrics.ts";

/** Anomalies in a runtime's responses. */
export type AnomalyKind =
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
  | "statsWithoutAttributes";

// Limits logging for a faulty runtime. The metric counts all anomalies.
const maxLogged = 100;

/** Counts the anomalies of a runtime and logs each once, up to a limit. */
export class Anomalies {
  readonly #metrics: RuntimeMetrics;
  readonly #log: Logger;
  readonly #logged = new Set<string>();

  constructor(metrics: RuntimeMetrics, log: Logger) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** @param id ID of the affected sandbox, container or pod */
  report(kind: AnomalyKind, id: string): void {
    this.#metrics.anomalies.inc({ kind });
    const key = `${kind} ${id}`;
    if (this.#logged.size >= maxLogged || this.#logged.has(key)) return;
    this.#logged.add(key);
    this.#log.warn(
      { errorId: PodNotInspectable.id, kind, id: id.slice(0, 128) },
      "anomaly in a response of the container runtime",
    );
  }
}
