import type { Logger } from "@nodekeeper/core/lib";
import type { MetThreshold } from "../decide/decision.ts";
import { heldText } from "../wording/held.ts";

/** Logs why confirmed thresholds are on hold: once when a hold starts and when its reason changes. */
export class HeldLog {
  readonly #log: Logger;
  #held = new Map<string, string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param now wall milliseconds */
  note(thresholds: readonly MetThreshold[], now: number): void {
    const held = new Map<string, string>();
    for (const { plugin, scope, held: hold } of thresholds) {
      if (hold === null) continue;
      held.set(plugin, hold.reason);
      if (this.#held.get(plugin) === hold.reason) continue;
      this.#log.info({ plugin, scope, reason: hold.reason, why: heldText(hold, now) }, "eviction on hold");
    }
    this.#held = held;
  }
}
