import type { KubeObject } from "@nodekeeper/core/kube";
import type { FieldSchema } from "../fields/schema.ts";
import type { Tree } from "../json.ts";

/** A version in which a kind is served. Objects are stored in one form; a version that differs converts. */
export interface ServedVersion {
  name: string;
  /** What objects of this version are checked against; absent: everything is accepted. */
  openapi?: Tree | undefined;
  /** From this version to the stored form. */
  decode?(object: KubeObject): KubeObject;
  /** From the stored form to this version. */
  encode?(object: KubeObject): KubeObject;
}

/** A column of `kubectl get`. */
export interface Column {
  name: string;
  type: "string" | "integer" | "date" | "number" | "boolean";
  /** Above 0: shown with `-o wide` only. */
  priority?: number;
  description?: string;
  /** The cell; `now` in milliseconds. */
  cell(object: KubeObject, now: number): unknown;
}

/** A kind this server serves. */
export interface ResourceDefinition {
  /** Empty for the core group. */
  group: string;
  kind: string;
  plural: string;
  singular: string;
  shortNames: string[];
  categories?: string[];
  namespaced: boolean;
  /** Preferred version first. */
  versions: ServedVersion[];
  /** Where objects are kept; two definitions may share one storage. */
  storage: string;
  /** apiVersion of the stored form. */
  storedApiVersion: string;
  /** Whether `status` is a subresource. */
  status: boolean;
  /** Whether pods' `eviction` is served. */
  eviction?: boolean;
  /** Whether metadata.generation counts changes of the specification. */
  generation: boolean;
  /** Whether a new object keeps the status it brings. */
  keepsStatusOnCreate?: boolean;
  /** Whether writes to the status subresource may change labels and annotations. */
  statusWritesMetadata?: boolean;
  /** Whether PUT needs metadata.resourceVersion. */
  needsResourceVersion?: boolean;
  /** Whether it is served from a CustomResourceDefinition: no strategic merge patch. */
  custom?: boolean;
  /** Field selectors besides metadata.name and metadata.namespace: label to path. */
  selectable?: Record<string, string[]>;
  columns?: Column[];
  /** How its fields merge; computed with the first write. */
  mergeRules(): FieldSchema;
  /** Fills in what the server sets on a new object; `time` is now, RFC 3339. */
  onCreate?(object: KubeObject, time: string): KubeObject;
  /** Throws a StatusError for an object that may not be stored. */
  validate?(object: KubeObject): void;
}

/** What a request addresses. */
export interface Target {
  definition: ResourceDefinition;
  version: ServedVersion;
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
}

/** "v1", or "group/v1". */
export function apiVersionOf(definition: ResourceDefinition, version: ServedVersion): string {
  return definition.group ? `${definition.group}/${version.name}` : version.name;
}

/** An object in the version asked for. */
export function encodeVersion(
  object: KubeObject,
  definition: ResourceDefinition,
  version: ServedVersion,
): KubeObject {
  const apiVersion = apiVersionOf(definition, version);
  if (!version.encode && object.apiVersion === apiVersion && object.kind === definition.kind) return object;
  const converted = version.encode ? version.encode(object) : object;
  return { ...converted, apiVersion, kind: definition.kind };
}

/** An object of a request in the stored form. */
export function decodeVersion(
  object: KubeObject,
  definition: ResourceDefinition,
  version: ServedVersion,
): KubeObject {
  const converted = version.decode ? version.decode(object) : object;
  return { ...converted, apiVersion: definition.storedApiVersion };
}
