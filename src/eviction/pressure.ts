import type { Ask } from "./decision.ts";
import type { RefusalReason } from "./refusals.ts";
import type { EvictionsUnderWay } from "./release.ts";

/** Knows which pressures have taken a victim that has yet to take effect. */
export class PressureGate {
  readonly #pending = new Set<string>();
  readonly #lastVictim = new Map<string, number>();
  readonly #cooldownMs: number;
  readonly #now: number;

  constructor({ pending, recent }: EvictionsUnderWay, cooldownMs: number, now: number) {
    this.#cooldownMs = cooldownMs;
    this.#now = now;
    for (const pod of pending) this.#pending.add(keyOf(pod));
    for (const eviction of recent) {
      const key = keyOf(eviction);
      const at = eviction.releasedAt ?? eviction.at;
      this.#lastVictim.set(key, Math.max(at, this.#lastVictim.get(key) ?? at));
    }
  }

  /**
   * Why this wish has to wait; null where it need not. A pressure is what one plugin says about one scope. Pods forced
   * by name are no pressure: each of them has to go for itself.
   */
  holds({ plugin, scope, source, kind }: Ask): Extract<RefusalReason, "pendingRelease" | "cooldown"> | null {
    if (source === "evictPods" && kind === "forced") return null;
    const key = keyOf({ plugin, scope });
    if (this.#pending.has(key)) return "pendingRelease";
    const last = this.#lastVictim.get(key);
    return last !== undefined && this.#now - last < this.#cooldownMs ? "cooldown" : null;
  }
}

// The length keeps apart what the joint text alone would not.
function keyOf({ plugin, scope }: { plugin: string; scope: string }): string {
  return `${plugin.length}:${plugin}/${scope}`;
}
