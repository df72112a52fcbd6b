import type { NamedResources } from "../model/model.ts";
import { encodeModel, type StoredModel, storedModel } from "../model/stored-model.ts";
import { planModels } from "../plan/plan-models.ts";
import { isStale } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";
import { isRefusal, type SliceRequests } from "./slice-requests.ts";
import type { WriteResult } from "./write-result.ts";

/** Brings the slices of one driver to what it reports, on a server of 1.30: one write after another. */
export async function writeModels(
  requests: SliceRequests,
  cache: SliceCache,
  driver: string,
  models: readonly NamedResources[],
  result: WriteResult,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName } = requests;
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
}
