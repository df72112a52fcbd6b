import { evictionMode } from "@nodekeeper/api/decide";
import { evictionModeText } from "@nodekeeper/api/wording";
import type { AgentContext } from "./context.ts";

/** Logs whether pods are evicted and, if not, how to switch eviction on. */
export class EvictionModeLog {
  readonly #context: Pick<AgentContext, "configuration" | "log">;
  #logged = "";

  constructor(context: Pick<AgentContext, "configuration" | "log">) {
    this.#context = context;
  }

  /** Logs the mode unless it is the one that was logged last. */
  update(): void {
    const { configuration, log } = this.#context;
    const { enabled, dryRunPlugins } = configuration().eviction;
    const mode = evictionMode({ dryRunPlugins });
    const facts = enabled ? { mode, meaning: evictionModeText(mode, dryRunPlugins) } : { mode: "off" };
    const written = JSON.stringify(facts);
    if (written === this.#logged) return;
    this.#logged = written;
    log.info(facts, "eviction mode");
  }
}
