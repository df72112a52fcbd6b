import { NodekeeperError } from "@nodekeeper/core/lib";
import type { CheckedPool, StoredSlice } from "../model/checked.ts";
import { type PoolPlan, planSlices } from "../plan/plan.ts";
import type { PlanMemory } from "../plan/plan-memory.ts";
import type { Desired } from "./driver.ts";
import { writeModels } from "./model-writer.ts";
import { type DriverSlices, PoolRound } from "./pool-round.ts";
import type { SliceCache } from "./slice-cache.ts";
import type { SliceRequests } from "./slice-requests.ts";
import type { WriteResult } from "./write-result.ts";

// Each turn finds more refused devices, or meets another client's write.
const MOST_TURNS = 10;

/**
 * Brings the slices of one driver to the desired state.
 *
 * 1. A pool from which the scheduler allocates is not broken by a slice that the server refuses: where a pool's
 *    generation is to rise, its changed slices are sent as dry runs first.
 * 2. The devices for which a slice is refused are found by halving it, and quarantined; the others are written.
 * 3. Where a write is refused although its pool already rises, the slice is written without devices at once, so that the
 *    pool is complete again, and then halved.
 * 4. What the server stores differently from what was sent is taken as the answer to it: the same is not sent again.
 */
export class SliceWriter {
  readonly #requests: SliceRequests;
  readonly #cache: SliceCache;

  constructor(requests: SliceRequests, cache: SliceCache) {
    this.#requests = requests;
    this.#cache = cache;
  }

  /** Throws what concerns all slices: the server is out of reach. What concerns one is in the result. */
  async write(
    driver: string,
    desired: Desired,
    memory: DriverSlices,
    signal: AbortSignal,
  ): Promise<WriteResult> {
    const result: WriteResult = {
      writes: 0,
      failures: new Map(),
      dropped: [],
      missing: new Set(),
      outdated: [],
    };
    const { version } = this.#requests.api;
    if (version === "v1alpha2") {
      await writeModels(this.#requests, this.#cache, driver, desired.models, result, signal);
      return result;
    }
    const refusals = new Map<string, number>();
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const plans = this.#plan(driver, memory.refused.without(desired.pools), memory.plans);
      result.failures.clear();
      let again = false;
      for (const plan of plans) {
        const round = new PoolRound(
          this.#requests,
          this.#cache,
          version,
          plan,
          memory,
          result,
          refusals,
          signal,
        );
        again = (await round.run()) || again;
      }
      memory.refused.checked();
      if (!again) return result;
    }
    // Tried again after a while.
    const message = `the slices of ${driver} are not as planned after ${MOST_TURNS} attempts`;
    result.failures.set(driver, new NodekeeperError("conflict", message, { id: "NK1504" }));
    return result;
  }

  #plan(driver: string, pools: readonly CheckedPool[], memory: PlanMemory): PoolPlan[] {
    return planSlices({
      driver,
      nodeName: this.#requests.nodeName,
      pools,
      stored: this.#cache.of(driver) as StoredSlice[],
      foreign: this.#cache.foreignOf(driver),
      memory,
    });
  }
}
