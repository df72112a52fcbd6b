import type { DatabaseSync } from "node:sqlite";
import { type Consequence, consequences } from "./consequence.ts";

/** The rounds that one plugin caused, of one kind of consequence. */
export interface RoundGroup {
  consequence: Consequence;
  plugin: string;
  bytes: number;
}

// Of the largest size of all records. What one leaves free the others may use.
const shares: Readonly<Record<Consequence, number>> = { none: 0.25, refusal: 0.25, effect: 0.5 };

/**
 * The bytes of recorded rounds, by consequence and plugin, and the order in which they are deleted if there are too many:
 *
 * 1. Rounds without a consequence go first, then refusals, then those with an effect, each only while they take more than
 *    their share: a quarter, a quarter, half.
 * 2. Among them, the oldest round of the plugin that takes most: one plugin displaces only its own.
 */
export class RoundUsage {
  /** Of all records, rounds and what belongs to them. */
  total = 0;
  readonly #groups: RoundGroup[] = [];

  /** Counts what is stored. @param rowBytes what a row costs besides its contents */
  static count(connection: DatabaseSync, rowBytes: number): RoundUsage {
    const usage = new RoundUsage();
    const rows = connection
      .prepare(
        "SELECT consequence, plugin, sum(bytes) AS bytes FROM eviction_round GROUP BY consequence, plugin",
      )
      .all();
    for (const { consequence, plugin, bytes } of rows)
      usage.add(consequences[consequence as number]!, [plugin as string], bytes as number);
    const others = connection
      .prepare(
        `SELECT (SELECT coalesce(sum(length(body) + ?1), 0) FROM eviction_base)
              + (SELECT coalesce(sum(length(message) + ?1), 0) FROM eviction_step) AS bytes`,
      )
      .get(rowBytes);
    usage.total += others?.bytes as number;
    return usage;
  }

  /** Adds a round. Returns the plugin it counts for: of those that caused it the one with the fewest bytes. */
  add(consequence: Consequence, plugins: readonly string[], bytes: number): string {
    const groups = (plugins.length === 0 ? [""] : plugins).map((plugin) => this.#group(consequence, plugin));
    const group = groups.reduce((least, one) => (one.bytes < least.bytes ? one : least));
    if (!this.#groups.includes(group)) this.#groups.push(group);
    group.bytes += bytes;
    this.total += bytes;
    return group.plugin;
  }

  /**
   * The group to delete from; undefined if there is none left.
   * @param maxBytes the size of all records to which the shares refer
   * @param spent groups of which nothing can be deleted
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

// By content: the groups are counted again after each deletion.
function isSpent({ consequence, plugin }: RoundGroup, spent: ReadonlySet<RoundGroup>): boolean {
  return [...spent].some((one) => one.consequence === consequence && one.plugin === plugin);
}

function sum(groups: readonly RoundGroup[]): number {
  return groups.reduce((total, { bytes }) => total + bytes, 0);
}
