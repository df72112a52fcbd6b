import type { KubeObject } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { apiVersionOf, decodeVersion, type Target } from "../catalogue/definition.ts";
import type { Writer } from "../fields/managed-fields.ts";
import { dropNulls, isTree, objectKey, timestamp } from "../json.ts";
import { badRequest, notFound, type Subject } from "../status.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** What every write works on. */
export interface WriteContext {
  store: ObjectStore;
  catalogue: Catalogue;
  clock: Clock;
}

/** The options that a client sends with a write. */
export interface WriteOptions {
  /** Who is recorded in managedFields. */
  manager: string;
  dryRun: boolean;
}

/** The outcome of a write: the object in its stored form. */
export interface WriteResult {
  object: KubeObject;
  created: boolean;
}

/** What errors about a target name. */
export function subjectOf({ definition, name }: Target): Subject {
  return { group: definition.group, plural: definition.plural, kind: definition.kind, name: name ?? "" };
}

/** The stored object, or a 404. */
export function findLive({ store }: WriteContext, target: Target): KubeObject {
  const live = store.get(target.definition.storage, objectKey(target.namespace, target.name ?? ""));
  if (!live) throw notFound(subjectOf(target));
  return live;
}

export function writerFor(
  { clock }: WriteContext,
  target: Target,
  operation: Writer["operation"],
  manager: string,
): Writer {
  return {
    manager,
    operation,
    apiVersion: apiVersionOf(target.definition, target.version),
    subresource: target.subresource,
    time: timestamp(clock.now()),
  };
}

/** Checks that a request's body is an object of the kind and place its path names, and gives it in the stored form. */
export function readBody(body: unknown, target: Target): KubeObject {
  if (!isTree(body)) throw badRequest("the body of the request must be an object");
  const metadata = body.metadata ?? {};
  if (!isTree(metadata)) throw badRequest("metadata must be an object");
  const { definition, version, namespace, name } = target;
  const apiVersion = apiVersionOf(definition, version);
  if ((body.apiVersion ?? apiVersion) !== apiVersion) {
    throw badRequest(
      `the API version in the data (${body.apiVersion}) does not match the expected API version (${apiVersion})`,
    );
  }
  if ((body.kind ?? definition.kind) !== definition.kind) {
    throw badRequest(
      `the kind in the data (${body.kind}) does not match the expected kind (${definition.kind})`,
    );
  }
  if (name !== undefined && (metadata.name ?? name) !== name) {
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  if ((metadata.namespace ?? namespace) !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  checkMetadata(metadata);
  const object = dropNulls({
    ...body,
    apiVersion,
    kind: definition.kind,
    metadata: { ...metadata, ...(namespace ? { namespace } : {}) },
  });
  return decodeVersion(object as KubeObject, definition, version);
}

// The fields that this server itself works with; a typed server would refuse to decode them.
function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  const refuse = (field: string, want: string) => {
    throw badRequest(`metadata.${field}: must be ${want}`);
  };
  for (const field of ["labels", "annotations"]) {
    const value = metadata[field] ?? {};
    const readable =
      isTree(value) && Object.values(value).every((item) => typeof item === "string" || item === null);
    if (!readable) refuse(field, "an object of strings");
  }
  for (const field of ["name", "generateName", "resourceVersion", "uid"]) {
    if (typeof (metadata[field] ?? "") !== "string") refuse(field, "a string");
  }
  for (const field of ["ownerReferences", "managedFields"]) {
    const value = metadata[field] ?? [];
    if (!Array.isArray(value) || !value.every(isTree)) refuse(field, "a list of objects");
  }
  const finalizers = metadata.finalizers ?? [];
  if (!Array.isArray(finalizers) || !finalizers.every((item) => typeof item === "string"))
    refuse("finalizers", "a list of strings");
}
