import type { EvictionPod } from "./pods.ts";
import type { EvictionLimits } from "./policy.ts";
import type { RecentEviction } from "./state.ts";

/** A limit that is reached, so that evictions are refused. */
export interface ReachedLimit<Reason extends LimitReason = LimitReason> {
  reason: Reason;
  /** When enough evictions have left the window to allow one more, wall milliseconds; null if the limit is 0. */
  until: number | null;
}

/** How much of a limit is used. */
export interface LimitUse {
  /** Null for no limit. */
  limit: number | null;
  /** Evictions within the window. */
  used: number;
  /** When one more is allowed, wall milliseconds; null if it is allowed now, or if the limit is 0. */
  freeAt: number | null;
}

type LimitReason = "nodeLimit" | "namespaceLimit" | "ownerLimit";

/** Returns the evictions within the window of the limits, oldest first. Cooldown remembers others too. */
export function inWindow(
  recent: readonly RecentEviction[],
  { windowMs }: Pick<EvictionLimits, "windowMs">,
  now: number,
): RecentEviction[] {
  return recent.filter(({ at }) => now - at < windowMs).sort((a, b) => a.at - b.at);
}

/** Counts evictions within the window of the limits: on the node, by namespace and by owner. */
export class LimitCounter {
  readonly #limits: EvictionLimits;
  readonly #now: number;
  /** Times of the evictions within the window, from which they count, oldest first. */
  readonly #times: number[] = [];
  readonly #namespaces = new Map<string, number[]>();
  readonly #owners = new Map<string, number[]>();

  constructor(limits: EvictionLimits, recent: readonly RecentEviction[], now: number) {
    this.#limits = limits;
    this.#now = now;
    for (const { namespace, ownerUid, at } of inWindow(recent, limits, now))
      this.#add(namespace, ownerUid, at);
  }

  /** Returns the limit that refuses one more eviction of any pod; null if none does. */
  forbidsAny(): ReachedLimit<"nodeLimit"> | null {
    return this.#reached("nodeLimit", this.#times, this.#limits.perNode);
  }

  /** Returns the limit that refuses the eviction of this pod; null if none does. */
  forbids({ namespace, owner }: EvictionPod): ReachedLimit | null {
    const { perNamespace, perOwner } = this.#limits;
    return (
      this.forbidsAny() ??
      this.#reached("namespaceLimit", this.#namespaces.get(namespace), perNamespace) ??
      (owner && this.#reached("ownerLimit", this.#owners.get(owner.uid), perOwner))
    );
  }

  /**
   * Returns how much of the limits is used. Only namespaces, and owners by UID, with evictions in the window are
   * included.
   */
  uses(): { node: LimitUse; namespaces: Map<string, LimitUse>; owners: Map<string, LimitUse> } {
    const { perNode, perNamespace, perOwner } = this.#limits;
    const useOf = (times: readonly number[], limit: number | null): LimitUse => {
      const freeAt = this.#reached("nodeLimit", times, limit)?.until ?? null;
      return { limit, used: times.length, freeAt };
    };
    const usesOf = (lists: ReadonlyMap<string, number[]>, limit: number | null) =>
      new Map([...lists].map(([key, times]) => [key, useOf(times, limit)]));
    return {
      node: useOf(this.#times, perNode),
      namespaces: usesOf(this.#namespaces, perNamespace),
      owners: usesOf(this.#owners, perOwner),
    };
  }

  /** Counts one more eviction, decided now. */
  count(pod: EvictionPod): void {
    this.#add(pod.namespace, pod.owner?.uid ?? null, this.#now);
  }

  #reached<Reason extends LimitReason>(
    reason: Reason,
    times: readonly number[] = [],
    limit: number | null,
  ): ReachedLimit<Reason> | null {
    if (limit === null || times.length < limit) return null;
    // The count falls below the limit when this eviction leaves the window.
    const leaving = times[times.length - limit];
    return { reason, until: leaving === undefined ? null : leaving + this.#limits.windowMs };
  }

  #add(namespace: string, ownerUid: string | null, at: number): void {
    this.#times.push(at);
    addTo(this.#namespaces, namespace, at);
    if (ownerUid !== null) addTo(this.#owners, ownerUid, at);
  }
}

function addTo(lists: Map<string, number[]>, key: string, at: number): void {
  const list = lists.get(key);
  if (list) list.push(at);
  else lists.set(key, [at]);
}
