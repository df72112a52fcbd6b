import type { KubeObject } from "@nodekeeper/core/kube";
import type { FieldSchema } from "../fields/schema.ts";
import type { Tree } from "../json.ts";

/** A version in which a kind is served. Objects are stored in one form, to which other versions convert. */
export interface ServedVersion {
  name: string;
  /** Schema for validation. Default: none, and everything is accepted. */
  openapi?: Tree | undefined;
  /** Converts an object of this version to the stored form. */
  decode?(object: KubeObject): KubeObject;
  /** Converts an object from the stored form to this version. */
  encode?(object: KubeObject): KubeObject;
}

/** A column of `kubectl get`. */
export interface Column {
  name: string;
  type: "string" | "integer" | "date" | "number" | "boolean";
  /** Above 0: shown only with `-o wide`. */
  priority?: number;
  description?: string;
  /** Returns the cell. `now` is in milliseconds. */
  cell(object: KubeObject, now: number): unknown;
}

/** A kind that this server serves. */
export interface ResourceDefinition {
  /** Empty for the core group. */
  group: string;
  kind: string;
  plural: string;
  singular: string;
  shortNames: string[];
  categories?: string[];
  namespaced: boolean;
  /** Versions in order of preference. */
  versions: ServedVersion[];
  /** Storage of the objects. Several definitions may share one. */
  storage: string;
  /** API version of the stored form. */
  storedApiVersion: string;
  /** Whether `status` is a subresource. */
  status: boolean;
  /** Whether the `eviction` subresource is served. */
  eviction?: boolean;
  /** Whether metadata.generation is incremented when the spec changes. */
  generation: boolean;
  /** Whether a new object keeps its status. */
  keepsStatusOnCreate?: boolean;
  /** Whether writes to the status subresource may change labels and annotations. */
  statusWritesMetadata?: boolean;
  /** Whether PUT requires metadata.resourceVersion. */
  needsResourceVersion?: boolean;
  /** Whether the kind is a custom resource, which does not support strategic merge patch. */
  custom?: boolean;
  /** Field selectors in addition to metadata.name and metadata.namespace: label to path. */
  selectable?: Record<string, string[]>;
  columns?: Column[];
  /** Returns the merge rules of its fields, computed on first use. */
  mergeRules(): FieldSchema;
  /** Sets the server's defaults on a new object. `time` is the current RFC 3339 time. */
  onCreate?(object: KubeObject, time: string): KubeObject;
  /** Throws a StatusError if an object is not valid. `before` is the object that it replaces, if there is one. */
  validate?(object: KubeObject, before?: KubeObject): void;
}

/** Target of a request. */
export interface Target {
  definition: ResourceDefinition;
  version: ServedVersion;
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
}

/** Returns "v1" or "group/v1". */
export function apiVersionOf(definition: ResourceDefinition, version: ServedVersion): string {
  return definition.group ? `${definition.group}/${version.name}` : version.name;
}

/** Converts a stored object to the requested version. */
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

/** Converts an object of a request to the stored form. */
export function decodeVersion(
  object: KubeObject,
  definition: ResourceDefinition,
  version: ServedVersion,
): KubeObject {
  const converted = version.decode ? version.decode(object) : object;
  return { ...converted, apiVersion: definition.storedApiVersion };
}
