import type { MetThreshold } from "@nodekeeper/api/decide";
import { HardThresholdUnserved } from "@nodekeeper/api/errors";
import { heldText, unservedText } from "@nodekeeper/api/wording";
import type { Logger } from "@nodekeeper/core/lib";

/**
 * Logs why confirmed thresholds are on hold, and why no pod may be selected for hard ones: once when it starts, and
 * when the reason changes.
 */
export class HeldLog {
  readonly #log: Logger;
  #held = new Map<string, string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param now wall milliseconds */
  note(thresholds: readonly MetThreshold[], now: number): void {
    const held = new Map<string, string>();
    for (const { plugin, scope, held: hold, unserved } of thresholds) {
      if (hold === null && unserved) {
        held.set(plugin, unserved.reason);
        if (this.#held.get(plugin) === unserved.reason) continue;
        const why = unservedText(unserved);
        this.#log.warn(
          { errorId: HardThresholdUnserved.id, plugin, scope, reason: unserved.reason, why },
          "no pod may be selected for a met threshold",
        );
      }
      if (hold === null) continue;
      held.set(plugin, hold.reason);
      if (this.#held.get(plugin) === hold.reason) continue;
      this.#log.info({ plugin, scope, reason: hold.reason, why: heldText(hold, now) }, "eviction on hold");
    }
    this.#held = held;
  }
}
