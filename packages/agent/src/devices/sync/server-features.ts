import type { CheckedDevice, CheckedPool } from "../model/checked.ts";
import { type Feature, featuresIn, needs, taintsOf } from "../model/feature-bits.ts";
import { nodesOf, type SliceSpec } from "../model/model.ts";
import { decodeSpec, encodeSlice } from "../model/versions.ts";
import { droppedFields } from "../plan/features.ts";
import { nameSuffix, sliceName } from "../plan/slice-names.ts";
import { isRefusal, type SliceRequests } from "./slice-requests.ts";

/**
 * The features of an API server, learned from its answers. One object per server version, because servers are upgraded
 * one by one.
 */
export class ServerFeatures {
  readonly #kept = new Map<Feature, boolean>();
  // Features whose gates may have changed since they were learned: still used, and learned again.
  readonly #doubtful = new Set<Feature>();
  #epoch = 0;

  /** Features that the server drops. */
  get missing(): Set<Feature> {
    return new Set([...this.#kept].flatMap(([feature, isKept]) => (isKept ? [] : [feature])));
  }

  /** Returns the features of which nothing is known. */
  unknownOf(features: readonly Feature[]): Set<Feature> {
    return new Set(features.filter((feature) => !this.#kept.has(feature)));
  }

  /** Returns the features to learn before slices that need them are written. */
  toLearn(features: readonly Feature[]): Feature[] {
    return features.filter((feature) => !this.#kept.has(feature) || this.#doubtful.has(feature));
  }

  /** Records whether the server keeps a feature. Returns whether that is new. */
  learnt(feature: Feature, isKept: boolean): boolean {
    const isNew = this.#kept.get(feature) !== isKept;
    this.#kept.set(feature, isKept);
    this.#doubtful.delete(feature);
    return isNew;
  }

  /** Changes when the server's gates may have changed, so that everything must be learned again. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Marks all features to be learned again, because the server's gates may have changed. */
  doubt(): void {
    this.#epoch++;
    for (const feature of this.#kept.keys()) this.#doubtful.add(feature);
  }
}

/**
 * Determines by dry runs, before anything is written, which features required by a driver's pools the server stores.
 * Sends slices with a sample of each feature; if one is refused, tries each feature alone. A refusal proves nothing
 * about the server, because it may come from an admission policy for this driver. Returns the features to omit for this
 * driver only, and whether anything new was learned about the server. Throws errors other than refusals.
 */
export async function learnFeatures(
  { requests, features: known }: { requests: SliceRequests; features: ServerFeatures },
  driver: string,
  pools: readonly CheckedPool[],
  signal: AbortSignal,
): Promise<{ without: Set<Feature>; isNew: boolean }> {
  const without = new Set<Feature>();
  let isNew = false;
  const version = requests.api.version;
  const features = known.toLearn(featuresIn({ pools }));
  if (features.length === 0 || version === "v1alpha2") return { without, isNew };

  const learn = async (some: readonly Feature[]): Promise<boolean> => {
    const specs = specsFor(driver, requests.nodeName, pools, some);
    for (const spec of specs) {
      let answer: SliceSpec;
      try {
        const name = sliceName(0, nameSuffix(driver, requests.nodeName, "dry-run"));
        const metadata = await requests.metadataOf(name, signal);
        answer = decodeSpec(version, await requests.dryRun(encodeSlice(version, metadata, spec), signal));
      } catch (error) {
        if (isRefusal(error)) return false;
        throw error;
      }
      const dropped = new Set(droppedFields(spec, answer).map(({ feature }) => feature));
      const sent = featuresOfSpec(spec, pools, some);
      for (const feature of sent) isNew = known.learnt(feature, !dropped.has(feature)) || isNew;
    }
    return true;
  };
  if (await learn(features)) return { without, isNew };
  for (const feature of features) {
    if (await learn([feature])) continue;
    // A server without the gate drops the lists, and refuses the remaining attributes because they have no value.
    if (feature === "DRAListTypeAttributes") without.add(feature);
  }
  return { without, isNew };
}

// Takes the first pool that needs each feature. The server treats a feature alike in all pools.
function specsFor(
  driver: string,
  nodeName: string | undefined,
  pools: readonly CheckedPool[],
  features: readonly Feature[],
): SliceSpec[] {
  const samples = new Map<CheckedPool, Set<CheckedDevice>>();
  for (const feature of features) {
    const pool = pools.find((candidate) => featuresIn({ pools: [candidate] }).includes(feature))!;
    const chosen = samples.get(pool) ?? new Set();
    samples.set(pool, chosen);
    const candidates = pool.devices.filter((device) => needs(device, feature));
    const sample = candidates.find((device) => taintsOf(device)?.some(({ effect }) => effect !== "None"));
    for (const device of [sample ?? candidates[0] ?? []].flat()) chosen.add(device);
  }
  return [...samples].map(([{ name, fields, devices, counterSets }, chosen]): SliceSpec => {
    // The server refuses a partition type in a slice in which no device consumes counters.
    const consumer =
      fields.partitionTypeAttribute && devices.find((device) => needs(device, "DRAPartitionableDevices"));
    if (consumer) chosen.add(consumer);
    const common = {
      driver,
      pool: { name, generation: 1, resourceSliceCount: 1 },
      ...nodesOf(fields, nodeName),
    };
    // Counter sets that no device consumes yet. A slice has either counter sets or devices.
    if (chosen.size === 0 && counterSets.length > 0)
      return { ...common, sharedCounters: [counterSets[0]!.set] };
    return { ...common, ...fields, devices: [...chosen].map(({ device }) => device) };
  });
}

function featuresOfSpec(
  spec: SliceSpec,
  pools: readonly CheckedPool[],
  features: readonly Feature[],
): Feature[] {
  if (spec.sharedCounters) return ["DRAPartitionableDevices"];
  const pool = pools.find(({ name }) => name === spec.pool.name)!;
  const names = new Set(spec.devices?.map(({ name }) => name));
  const sent = featuresIn({
    pools: [{ ...pool, counterSets: [], devices: pool.devices.filter(({ name }) => names.has(name)) }],
  });
  return sent.filter((feature) => features.includes(feature));
}
