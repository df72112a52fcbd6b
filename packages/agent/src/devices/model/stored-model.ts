import { hash } from "node:crypto";
import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { Canonical, int64Text } from "./canonical.ts";
import type { NamedAttribute, NamedResources } from "./model.ts";
import { encodeInt } from "./versions.ts";

/** A slice of resource.k8s.io/v1alpha2 as the API server has it. */
export interface StoredModel {
  /** As stored; an update keeps it. */
  metadata: ObjectMeta;
  name: string;
  driver: string;
  /** Immutable in the API. */
  nodeName: string;
  fingerprint: string;
  /** Number of instances. */
  instances: number;
}

/** Encodes a slice of v1alpha2, which has no spec: all fields are at the top level. */
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

/** Returns the model of a slice from the API server; empty if its kind is unknown. */
export function decodeModel(object: KubeObject): NamedResources {
  const raw = object.namedResources as { instances?: NamedResources["instances"] | null } | undefined;
  return {
    instances: (raw?.instances ?? []).map(({ name, attributes }) => ({ name, attributes: attributes ?? [] })),
  };
}

/** Reduces a slice from the API server to what planning needs. */
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

/** Returns a fingerprint that is equal for equivalent models. */
export function modelFingerprint(model: NamedResources, canonical: Canonical): string {
  const text = JSON.stringify(
    model.instances.map(({ name, attributes }) => [
      name,
      attributes.map((value) => attributeText(value, canonical)),
    ]),
  );
  return hash("sha256", text, "base64url");
}

function attributeText(attribute: NamedAttribute, canonical: Canonical): unknown {
  const { name, quantity, bool, int, intSlice, string, stringSlice, version } = attribute;
  return [
    name,
    quantity === undefined ? null : canonical.quantity(quantity),
    bool,
    int === undefined ? null : int64Text(int),
    intSlice ? (intSlice.ints ?? []).map(int64Text) : null,
    string,
    stringSlice ? (stringSlice.strings ?? []) : null,
    version,
  ];
}

function encodeAttribute({ int, intSlice, ...rest }: NamedAttribute): Record<string, unknown> {
  return {
    ...rest,
    ...(int !== undefined && { int: encodeInt(int) }),
    ...(intSlice && { intSlice: { ints: intSlice.ints.map(encodeInt) } }),
  };
}
