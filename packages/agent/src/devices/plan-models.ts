import { hash } from "node:crypto";
import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { Canonical } from "./canonical.ts";
import type { Int64, NamedAttribute, NamedResources } from "./model.ts";
import { nameSuffix, sliceName } from "./slice-names.ts";
import { encodeInt } from "./versions.ts";

/** A slice of resource.k8s.io/v1alpha2 as the API server has it. */
export interface StoredModel {
  /** As it is there: an update keeps it. */
  metadata: ObjectMeta;
  name: string;
  driver: string;
  /** Immutable in the API. */
  nodeName: string;
  fingerprint: string;
  /** How many instances it has. */
  instances: number;
}

export interface ModelPlanInput {
  driver: string;
  nodeName: string;
  models: readonly NamedResources[];
  /** Every slice of the driver on this node, and no other. */
  stored: readonly StoredModel[];
}

/** What is to be written. Deletions first, then updates, then creations. */
export interface ModelPlan {
  deletes: StoredModel[];
  updates: { stored: StoredModel; model: NamedResources }[];
  creates: { name: string; model: NamedResources }[];
}

/**
 * One slice for each model, as the kubelet of 1.30 has it: slices that hold a model already stay, the others are given to models
 * without one, and what is left over is deleted. Each slice holds one model, also where two models are equal; the kubelet
 * creates a new slice at every sync then.
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

/** A slice of v1alpha2: everything lies at the top, there is no spec. */
export function encodeModel(
  metadata: ObjectMeta,
  driver: string,
  nodeName: string,
  model: NamedResources,
): KubeObject {
  return {
    apiVersion: "resource.k8s.io/v1alpha2",
    kind: "ResourceSlice",
    metadata,
    nodeName,
    driverName: driver,
    namedResources: {
      instances: model.instances.map(({ name, attributes }) => ({
        name,
        ...(attributes.length > 0 && { attributes: attributes.map(encodeAttribute) }),
      })),
    },
  };
}

/** The model in an object that the API server gave; empty where it is of a kind that is not known. */
export function decodeModel(object: KubeObject): NamedResources {
  const raw = object.namedResources as { instances?: NamedResources["instances"] | null } | undefined;
  return {
    instances: (raw?.instances ?? []).map(({ name, attributes }) => ({ name, attributes: attributes ?? [] })),
  };
}

/** What planning needs of an object that the API server gave. */
export function storedModel(object: KubeObject, canonical = new Canonical()): StoredModel {
  const model = decodeModel(object);
  return {
    metadata: object.metadata,
    name: object.metadata.name ?? "",
    driver: String(object.driverName ?? ""),
    nodeName: String(object.nodeName ?? ""),
    fingerprint: modelFingerprint(model, canonical),
    instances: model.instances.length,
  };
}

function modelFingerprint(model: NamedResources, canonical: Canonical): string {
  const text = JSON.stringify(
    model.instances.map(({ name, attributes }) => [
      name,
      attributes.map((value) => attributeText(value, canonical)),
    ]),
  );
  return hash("sha256", text, "base64url");
}

// Beyond 2^53 the nearest double, as everywhere.
function attributeText(attribute: NamedAttribute, canonical: Canonical): unknown {
  const { name, quantity, bool, int, intSlice, string, stringSlice, version } = attribute;
  return [
    name,
    quantity === undefined ? null : canonical.quantity(quantity),
    bool,
    int === undefined ? null : Number(int),
    intSlice ? (intSlice.ints ?? []).map(Number) : null,
    string,
    stringSlice ? (stringSlice.strings ?? []) : null,
    version,
  ];
}

function encodeAttribute({ int, intSlice, ...rest }: NamedAttribute): Record<string, unknown> {
  const encode = (value: Int64) => encodeInt(value);
  return {
    ...rest,
    ...(int !== undefined && { int: encode(int) }),
    ...(intSlice && { intSlice: { ints: intSlice.ints.map(encode) } }),
  };
}
