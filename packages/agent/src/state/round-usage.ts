import type { StateDatabase } from "./database.ts";

/**
 * Consequence of a round. `none`; `refusal`: a hard request for a pod on the node was refused; `effect`: a
 * pod was selected or withdrawn, an eviction ended, or a condition was set or cleared. Stored as 0, 1, 2.
 */
export type Consequence = (typeof consequences)[number];
export const consequences = ["none", "refusal", "effect"] as const;

/** The rounds with one kind of consequence that are attributed to one plugin. */
export interface RoundGroup {
  consequence: Consequence;
  plugin: string;
  bytes: number;
}

// Shares of the maximum size of all records. Unused space is available to the others.
const shares: Readonly<Record<Consequence, number>> = { none: 0.25, refusal: 0.25, effect: 0.5 };

/**
 * The size of recorded rounds by consequence and plugin, and the order in which they are deleted if there are
 * too many:
 *
 * 1. Rounds without a consequence are deleted first, then refusals, then those with an effect, each only
 *    while they exceed their share: a quarter, a quarter, half. If none exceeds its share, the first of these
 *    kinds is deleted.
 * 2. Within a kind, the oldest rounds of the plugin that uses the most space are deleted, so a plugin
 *    displaces only its own.
 */
export class RoundUsage {
  readonly #groups: RoundGroup[] = [];
  #total = 0;

  /**
   * Counts the stored records.
   * @param rowBytes overhead of a row in bytes
   */
  static count(database: StateDatabase, rowBytes: number): RoundUsage {
    const usage = new RoundUsage();
    const rows = database.all<{ consequence: number; plugin: string; bytes: number }>(
      "SELECT consequence, plugin, sum(bytes) AS bytes FROM eviction_round GROUP BY consequence, plugin",
    );
    for (const { consequence, plugin, bytes } of rows) usage.add(consequences[consequence]!, [plugin], bytes);
    const others = database.first<{ bytes: number }>(
      `SELECT (SELECT coalesce(sum(length(body) + ?1), 0) FROM eviction_base)
            + (SELECT coalesce(sum(length(message) + ?1), 0) FROM eviction_step) AS bytes`,
      rowBytes,
    );
    usage.grow(others!.bytes);
    return usage;
  }

  /**
   * Adds a round. Returns the plugin it is attributed to: of those that caused it, the one with the fewest
   * bytes.
   */
  add(consequence: Consequence, plugins: readonly string[], bytes: number): string {
    const groups = (plugins.length === 0 ? [""] : plugins).map((plugin) => this.#group(consequence, plugin));
    const group = groups.reduce((least, one) => (one.bytes < least.bytes ? one : least));
    if (!this.#groups.includes(group)) this.#groups.push(group);
    group.bytes += bytes;
    this.#total += bytes;
    return group.plugin;
  }

  /** Adds a base or a step. */
  grow(bytes: number): void {
    this.#total += bytes;
  }

  /** Bytes of all records: rounds, bases and steps. */
  get total(): number {
    return this.#total;
  }

  /**
   * Returns the group to delete from. Undefined if there is none left.
   * @param maxBytes maximum size of all records, to which the shares refer
   * @param spent groups without rounds that can be deleted
   */
  mostOverShare(maxBytes: number, spent: ReadonlySet<RoundGroup>): RoundGroup | undefined {
    const left = this.#groups.filter((group) => !isSpent(group, spent));
    const of = (consequence: Consequence) => left.filter((group) => group.consequence === consequence);
    const present = consequences.filter((consequence) => of(consequence).length > 0);
    const over = present.find((one) => sum(of(one)) > maxBytes * shares[one]) ?? present[0];
    return over && of(over).reduce((most, one) => (one.bytes > most.bytes ? one : most));
  }

  #group(consequence: Consequence, plugin: string): RoundGroup {
    const known = this.#groups.find((one) => one.consequence === consequence && one.plugin === plugin);
    return known ?? { consequence, plugin, bytes: 0 };
  }
}

// Compares by content, because the groups are counted again after each deletion.
function isSpent({ consequence, plugin }: RoundGroup, spent: ReadonlySet<RoundGroup>): boolean {
  return [...spent].some((one) => one.consequence === consequence && one.plugin === plugin);
}

function sum(groups: readonly RoundGroup[]): number {
  return groups.reduce((total, { bytes }) => total + bytes, 0);
}
