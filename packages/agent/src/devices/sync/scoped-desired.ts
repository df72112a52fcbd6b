import { isBeyondNode } from "../model/model.ts";
import type { Desired } from "./driver.ts";

/**
 * Returns the part of a driver's desired state that belongs to the node, or to pools beyond it. What is refused before
 * publication is reported with the node's part. Equal inputs give the same object.
 */
export class ScopedDesired {
  readonly #isBeyond: boolean;
  readonly #known = new WeakMap<Desired, Desired>();

  /** @param isBeyond whether the part is that of pools beyond the node */
  constructor(isBeyond: boolean) {
    this.#isBeyond = isBeyond;
  }

  of(desired: Desired): Desired {
    const beyond = new Set(
      desired.pools.filter(({ fields }) => isBeyondNode(fields)).map(({ name }) => name),
    );
    if (beyond.size === 0 && !this.#isBeyond) return desired;
    const known = this.#known.get(desired);
    if (known) return known;
    const isPart = (pool: string | undefined) => beyond.has(pool ?? "") === this.#isBeyond;
    const part = {
      ...desired,
      pools: desired.pools.filter(({ name }) => isPart(name)),
      dropped: desired.dropped.filter(({ pool }) => isPart(pool)),
      ...(this.#isBeyond && { models: [], problems: [], quarantined: 0 }),
    };
    this.#known.set(desired, part);
    return part;
  }
}
