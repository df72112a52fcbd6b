import type { EvictionPod } from "./pods.ts";
import type { EvictionLimits } from "./policy.ts";
import type { RecentEviction } from "./state.ts";

/** Counts the evictions of a time window by namespace and owner. */
export class LimitCounter {
  readonly #limits: EvictionLimits;
  readonly #namespaces = new Map<string, number>();
  readonly #owners = new Map<string, number>();

  constructor(limits: EvictionLimits, recent: readonly RecentEviction[], now: number) {
    this.#limits = limits;
    for (const { namespace, ownerUid, at } of recent) {
      if (now - at < limits.windowMs) this.#add(namespace, ownerUid);
    }
  }

  /** Which limit forbids one more pod like this; null where none does. */
  forbids(pod: EvictionPod): "namespaceLimit" | "ownerLimit" | null {
    const { perNamespace, perOwner } = this.#limits;
    if (perNamespace !== null && (this.#namespaces.get(pod.namespace) ?? 0) >= perNamespace)
      return "namespaceLimit";
    const owned = pod.owner === null ? 0 : (this.#owners.get(pod.owner.uid) ?? 0);
    return perOwner !== null && pod.owner !== null && owned >= perOwner ? "ownerLimit" : null;
  }

  count(pod: EvictionPod): void {
    this.#add(pod.namespace, pod.owner?.uid ?? null);
  }

  #add(namespace: string, ownerUid: string | null): void {
    this.#namespaces.set(namespace, (this.#namespaces.get(namespace) ?? 0) + 1);
    if (ownerUid !== null) this.#owners.set(ownerUid, (this.#owners.get(ownerUid) ?? 0) + 1);
  }
}
