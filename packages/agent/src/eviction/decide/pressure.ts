import type { Ask } from "./decision.ts";
import type { RefusalReason } from "./refusals.ts";
import type { EvictionsUnderWay } from "./release.ts";

/** Why no further pod may be selected for a pressure now. */
export interface PressureHold {
  reason: Extract<RefusalReason, "pendingRelease" | "cooldown">;
  /** When it ends at the latest, wall milliseconds; null where that is not known yet. */
  until: number | null;
}

/**
 * Decides whether a request has to wait for the effect of an earlier eviction, as the kubelet waits for its evicted pod
 * before it evicts the next: kubelet `pkg/kubelet/eviction/eviction_manager.go`, waitForPodsCleanup.
 *
 * 1. While the eviction of a victim has not ended, all scopes of the plugin's threshold are on hold, because a plugin may report the same
 *    shortage under changing scopes.
 * 2. The cooldown after a victim is per scope.
 * 3. Soft requests by name of one plugin wait for each other as those for one scope do, and neither for its threshold nor
 *    the other way round.
 * 4. Requests that force a pod by name wait for nothing: the plugin names each pod, and the agent does not know by which
 *    value the next one is not needed any more. Limits and the burst bound them.
 */
export class PressureGate {
  /** When holds for victims end at the latest, by pressure. */
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

  /** Why this request is on hold; null where it is not. */
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
