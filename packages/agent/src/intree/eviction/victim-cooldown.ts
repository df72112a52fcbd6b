import type { ObservedPod, PodReference } from "../../eviction/index.ts";
import type { EvictionPluginParts } from "./parts.ts";

/**
 * The cooldown of a plugin that has selected pods. It applies only if one of them was evicted: if all are still on the
 * node and none is terminating, for example because of a disruption budget, further pods can be selected immediately.
 */
export class VictimCooldown {
  readonly #parts: Pick<EvictionPluginParts, "clock" | "nodePods">;
  #uids: ReadonlySet<string> = new Set();
  #namedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Pick<EvictionPluginParts, "clock" | "nodePods">) {
    this.#parts = parts;
  }

  /** Call with the pods that the plugin selected; an empty list starts no cooldown. */
  start(victims: readonly PodReference[]): void {
    if (victims.length === 0) return;
    this.#uids = new Set(victims.map(({ uid }) => uid));
    this.#namedAt = this.#parts.clock.monotonic();
  }

  /** @param cooldownMs duration from the selection, milliseconds */
  holds(cooldownMs: number): boolean {
    const { clock, nodePods } = this.#parts;
    if (clock.monotonic() - this.#namedAt >= cooldownMs) return false;
    return nodePods === undefined || this.#wasEvicted(nodePods());
  }

  #wasEvicted(nodePods: readonly ObservedPod[]): boolean {
    const untouched = nodePods.filter(({ pod }) => this.#uids.has(pod.uid) && pod.deletionTimestamp === null);
    return untouched.length < this.#uids.size;
  }
}
