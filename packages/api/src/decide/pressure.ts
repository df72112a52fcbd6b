import type { RefusalReason } from "../reasons/index.ts";
import type { Ask } from "./decision.ts";
import type { EvictionsUnderWay } from "./release.ts";

/** Why no other pod may be selected for a pressure now. */
export interface PressureHold {
  reason: Extract<RefusalReason, "pendingRelease" | "cooldown">;
  /** Latest end of the hold, wall milliseconds; null if it is not known yet. */
  until: number | null;
}

/**
 * Decides whether a request must wait for the effect of an earlier eviction. The kubelet also waits for its evicted pod
 * before it evicts another: kubelet `pkg/kubelet/eviction/eviction_manager.go`, waitForPodsCleanup.
 *
 * 1. While the eviction of a victim has not ended, all scopes of the plugin's threshold are on hold, because a plugin
 *    may report the same shortage under changing scopes.
 * 2. The cooldown after a victim is per scope.
 * 3. Soft requests by name of one plugin are treated as one scope. They are independent of the plugin's threshold.
 * 4. Forced requests by name never wait: the plugin names each pod, and the agent does not know which value makes the
 *    next one unnecessary. Limits and the burst bound them.
 */
export class PressureGate {
  /** The latest end of holds for victims, by pressure. */
  readonly #pending = new Map<string, number | null>();
  readonly #lastVictim = new Map<string, number>();
  readonly #cooldownMs: number;
  readonly #now: number;

  constructor(
    { holding, recent }: Pick<EvictionsUnderWay, "holding" | "recent">,
    cooldownMs: number,
    now: number,
  ) {
    this.#cooldownMs = cooldownMs;
    this.#now = now;
    for (const { eviction, until } of holding) {
      for (const pressure of [eviction, ...(eviction.others ?? [])])
        this.#pending.set(pressureOf(pressure), until);
    }
    for (const eviction of recent) {
      const at = eviction.releasedAt ?? eviction.at;
      for (const pressure of [eviction, ...(eviction.others ?? [])]) {
        const key = keyOf(pressure);
        this.#lastVictim.set(key, Math.max(at, this.#lastVictim.get(key) ?? at));
      }
    }
  }

  /** Returns why this request is on hold; null if it is not. */
  holds({
    plugin,
    scope,
    source,
    kind,
  }: Pick<Ask, "plugin" | "scope" | "source" | "kind">): PressureHold | null {
    if (source === "evictPods" && kind === "forced") return null;
    const deadline = this.#pending.get(pressureOf({ plugin, scope, source }));
    if (deadline !== undefined) return { reason: "pendingRelease", until: deadline };
    const last = this.#lastVictim.get(keyOf({ plugin, scope }));
    if (last === undefined || this.#now - last >= this.#cooldownMs) return null;
    return { reason: "cooldown", until: last + this.#cooldownMs };
  }
}

function pressureOf({ plugin, scope, source }: Pick<Ask, "plugin" | "scope" | "source">): string {
  return source === "threshold" ? `threshold of ${plugin}` : keyOf({ plugin, scope });
}

// The length makes the key unambiguous.
function keyOf({ plugin, scope }: { plugin: string; scope: string }): string {
  return `${plugin.length}:${plugin}/${scope}`;
}
