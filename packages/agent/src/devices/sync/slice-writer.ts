import { SlicesNotAsPlanned } from "@nodekeeper/api/errors";
import type { CheckedPool, StoredSlice } from "../model/checked.ts";
import type { NamedResources } from "../model/model.ts";
import type { PoolHead } from "../model/pool-head.ts";
import { encodeModel, type StoredModel, storedModel } from "../model/stored-model.ts";
import { planFirstSlice } from "../plan/first-slice.ts";
import { type PoolPlan, planSlices } from "../plan/plan.ts";
import type { PlanMemory } from "../plan/plan-memory.ts";
import { planModels } from "../plan/plan-models.ts";
import type { Desired } from "./driver.ts";
import type { WriteResult } from "./driver-sync.ts";
import { type DriverSlices, PoolRound } from "./pool-round.ts";
import { isStale } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";
import { isRefusal, type SliceRequests } from "./slice-requests.ts";

/** The slices at the API server, and requests that change them. */
interface Session {
  requests: SliceRequests;
  cache: SliceCache;
}

// Each turn finds more refused devices, or conflicts with another client's write.
const MOST_TURNS = 10;

/**
 * Brings the slices of one driver to the desired state.
 *
 * 1. A slice that the server refuses does not make an allocatable pool incomplete: before a pool's generation rises,
 *    its changed slices are sent as dry runs.
 * 2. Devices that cause a refusal are found by bisection and quarantined. The others are written.
 * 3. If a write is refused after its pool's generation rose, the slice is written without devices at once to complete
 *    the pool, and then bisected.
 * 4. If the server stores a slice differently from what was sent, the same slice is not sent again.
 */
export class SliceWriter {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Writes the slices that differ from the desired state. Throws errors that concern all slices, such as an unreachable
   * server. Errors of single slices are in the result.
   */
  async write(
    driver: string,
    desired: Desired,
    memory: DriverSlices,
    signal: AbortSignal,
  ): Promise<WriteResult> {
    const { api, nodeName } = this.#session.requests;
    const { version } = api;
    if (version === "v1alpha2") {
      // It has no pools beyond the node.
      if (nodeName === undefined) return nothingWritten();
      return await writeModels(this.#session, nodeName, driver, desired.models, signal);
    }
    const result = nothingWritten();
    const refusals = new Map<string, number>();
    const common = { ...this.#session, version, memory, result, refusals, signal };
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const plans = this.#plan(driver, memory.refused.without(desired.pools), memory.plans);
      result.failures.clear();
      let again = false;
      for (const plan of plans) {
        const round = new PoolRound({ ...common, plan });
        again = (await round.run()) || again;
      }
      memory.refused.checked();
      if (!again) return result;
    }
    // The caller retries after its backoff.
    const message = `the slices of ${driver} are not as planned after ${MOST_TURNS} attempts`;
    result.failures.set(driver, new SlicesNotAsPlanned({ problem: message }));
    return result;
  }

  /**
   * Writes the first slice of a driver that has no slices, before the rest of its message is read. `write` completes or
   * corrects it. Throws as `write` does.
   */
  async writeFirst(driver: string, head: PoolHead, memory: DriverSlices, signal: AbortSignal): Promise<void> {
    const { requests, cache } = this.#session;
    const { version } = requests.api;
    const hasSlices = cache.of(driver).length > 0 || cache.foreignOf(driver).length > 0;
    const { nodeName } = requests;
    if (nodeName === undefined || version === "v1alpha2" || hasSlices || memory.refused.size > 0) return;
    const plan = planFirstSlice(driver, nodeName, head);
    const result = nothingWritten();
    const refusals = new Map<string, number>();
    await new PoolRound({ ...this.#session, version, plan, memory, result, refusals, signal }).attempt();
  }

  #plan(driver: string, pools: readonly CheckedPool[], memory: PlanMemory): PoolPlan[] {
    const { cache, requests } = this.#session;
    const { nodeName } = requests;
    const stored = cache.of(driver) as StoredSlice[];
    return planSlices({ driver, nodeName, pools, stored, foreign: cache.foreignOf(driver), memory });
  }
}

/** Brings the slices of one driver to the desired state on a 1.30 server, one write at a time. */
async function writeModels(
  { requests, cache }: Session,
  nodeName: string,
  driver: string,
  models: readonly NamedResources[],
  signal: AbortSignal,
): Promise<WriteResult> {
  const result = nothingWritten();
  const stored = cache.of(driver) as StoredModel[];
  const plan = planModels({ driver, nodeName, models, stored });
  const attempt = async (name: string, write: () => Promise<void>) => {
    try {
      await write();
      result.writes++;
    } catch (error) {
      if (!isRefusal(error) && !isStale(error)) throw error;
      result.failures.set(name, error);
    }
  };
  for (const slice of plan.deletes) await attempt(slice.name, () => requests.delete(slice, signal));
  const write = async (slice: string | StoredModel, model: NamedResources) => {
    const metadata = await requests.metadataOf(slice, signal);
    const object = encodeModel(metadata, driver, nodeName, model);
    const read = (answer: Parameters<typeof storedModel>[0]) => {
      const { managedFields, ...kept } = answer.metadata;
      return { ...storedModel(object), metadata: kept };
    };
    await requests.write(object, read, signal);
  };
  for (const { stored: slice, model } of plan.updates) await attempt(slice.name, () => write(slice, model));
  for (const { name, model } of plan.creates) await attempt(name, () => write(name, model));
  return result;
}

function nothingWritten(): WriteResult {
  return { writes: 0, failures: new Map(), dropped: [], missing: new Set(), outdated: [] };
}
