import { type KubeObject, recordOf, textOf } from "@nodekeeper/core/kube";
import type { SyncContext } from "./context.ts";
import type { Desired, Driver } from "./driver.ts";
import type { Session } from "./session.ts";

/** Shortest interval between lists of a driver's slices because of new names. */
const NEW_MS = 10_000;
/** The same because of refused names, which may be free again. */
const REFUSED_MS = 300_000;
const PAGE_SIZE = 100;

type Context = Pick<SyncContext, "client" | "clock" | "nodeName">;
/** Names, with the node that has such a pool. */
type Looked = ReadonlyMap<string, string | undefined>;

/**
 * Refuses new pools beyond the node whose names are taken by other nodes' pools. The scheduler treats both
 * as one pool with contradictory slices, and may allocate from neither.
 */
export class TakenNames {
  readonly #context: Context;
  /** The names of the last list. */
  #looked: Looked = new Map();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #made: { from: Desired; looked: Looked; desired: Desired } | undefined;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Looks up which names of the driver's unpublished pools are taken, by listing the driver's slices on all nodes.
   * Lists them only if a name is new, or was found taken at least 5 min ago, and at most every 10 s. Returns 0 if
   * `without` knows all names; otherwise the delay until they can be listed, in milliseconds.
   */
  async look({ api, cache }: Session, driver: Driver, signal: AbortSignal): Promise<number> {
    const { client, clock, nodeName } = this.#context;
    const published = new Set(cache.of(driver.name).map((slice) => "pool" in slice && slice.pool.name));
    const pools = driver.reportedPart(true)?.pools ?? [];
    const names = pools.map(({ name }) => name).filter((name) => !published.has(name));
    const now = clock.monotonic();
    const isKnown = names.every((name) => this.#looked.has(name));
    const isRefused = names.some((name) => this.#looked.get(name) !== undefined);
    if (isKnown && (!isRefused || now < this.#lookedAt + REFUSED_MS)) return 0;
    // Compares the remaining delay, not the elapsed time: after a rounded delay, the remainder may be too small to
    // change a floating-point time.
    const delayMs = this.#lookedAt + NEW_MS - now;
    if (delayMs > 0) return delayMs;
    this.#lookedAt = now;
    const looked = new Map<string, string | undefined>(names.map((name) => [name, undefined]));
    const visit = ({ spec }: KubeObject) => {
      const { nodeName: node, pool } = recordOf(spec);
      const name = textOf(recordOf(pool).name);
      if (textOf(node) !== "" && node !== nodeName && looked.has(name)) looked.set(name, textOf(node));
    };
    const fieldSelector = `spec.driver=${driver.name}`;
    await client.visit(api.resource, visit, { fieldSelector, pageSize: PAGE_SIZE, signal });
    this.#looked = looked;
    return 0;
  }

  /** Returns the desired state without the pools whose names are taken. Equal inputs give the same object. */
  without(from: Desired): Desired {
    const looked = this.#looked;
    if (this.#made?.from === from && this.#made.looked === looked) return this.#made.desired;
    const refused = from.pools.filter(({ name }) => looked.get(name) !== undefined);
    const problems = refused.map(({ name }) => ({
      pool: name,
      field: "name",
      message: `refused: node ${looked.get(name)} has a pool of this name, and the scheduler takes both for one`,
    }));
    const desired: Desired = {
      ...from,
      pools: from.pools.filter((pool) => !refused.includes(pool)),
      problems: [...problems, ...from.problems],
      quarantined: from.quarantined + refused.reduce((sum, { devices }) => sum + devices.length, 0),
    };
    this.#made = { from, looked, desired: refused.length > 0 ? desired : from };
    return this.#made.desired;
  }
}
