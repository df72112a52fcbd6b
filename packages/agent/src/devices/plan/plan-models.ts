import { Canonical } from "../model/canonical.ts";
import type { NamedResources } from "../model/model.ts";
import { modelFingerprint, type StoredModel } from "../model/stored-model.ts";
import { nameSuffix, sliceName } from "./slice-names.ts";

export interface ModelPlanInput {
  driver: string;
  nodeName: string;
  models: readonly NamedResources[];
  /** Exactly the slices of the driver on this node. */
  stored: readonly StoredModel[];
}

/** Writes to send: deletions first, then updates, then creations. */
export interface ModelPlan {
  deletes: StoredModel[];
  updates: { stored: StoredModel; model: NamedResources }[];
  creates: { name: string; model: NamedResources }[];
}

/**
 * Plans one slice per model, as the kubelet 1.30 does: a slice that already holds a model stays, the others are reused
 * for the remaining models, and surplus slices are deleted. Unlike the kubelet, which creates a new slice at every sync
 * if models are equal, it plans one slice for each of them.
 */
export function planModels({ driver, nodeName, models, stored }: ModelPlanInput): ModelPlan {
  const free = new Map<string, StoredModel[]>();
  for (const slice of stored) {
    const alike = free.get(slice.fingerprint);
    if (alike) alike.push(slice);
    else free.set(slice.fingerprint, [slice]);
  }
  const canonical = new Canonical();
  const homeless = models.filter((model) => !free.get(modelFingerprint(model, canonical))?.shift());
  const obsolete = [...free.values()].flat();

  const plan: ModelPlan = { deletes: [], updates: [], creates: [] };
  const taken = new Set(stored.map(({ name }) => name));
  const suffix = nameSuffix(driver, nodeName, "");
  let index = 0;
  for (const model of homeless) {
    const slice = obsolete.shift();
    if (slice) {
      plan.updates.push({ stored: slice, model });
      continue;
    }
    while (taken.has(sliceName(index, suffix))) index++;
    plan.creates.push({ name: sliceName(index++, suffix), model });
  }
  plan.deletes.push(...obsolete);
  return plan;
}
