import type { KubeObject } from "@nodekeeper/core/kube";
import { apiVersionOf, decodeVersion, type Target } from "../catalogue/definition.ts";
import { dropNulls, isTree } from "../json.ts";
import { badRequest } from "../status.ts";
import { checkFields } from "./check-fields.ts";
import type { WriteOptions } from "./context.ts";

/** Validates that a request's body matches the kind and location of its path. Returns it in the stored form. */
export function readBody(given: unknown, target: Target, options: WriteOptions, isApply = false): KubeObject {
  if (!isTree(given)) throw badRequest("the body of the request must be an object");
  if (!isTree(given.metadata ?? {})) throw badRequest("metadata must be an object");
  const body = checkFields(given, target, options, isApply);
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

// Validates the fields that this server uses. A typed server would fail to decode them.
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
