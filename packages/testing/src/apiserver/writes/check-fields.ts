import type { KubeObject } from "@nodekeeper/core/kube";
import { apiVersionOf, encodeVersion, type Target } from "../catalogue/definition.ts";
import { metadataProblems, refuse } from "../catalogue/object-rules.ts";
import { resolved } from "../catalogue/open-api.ts";
import { conform, type Misfit } from "../fields/conform.ts";
import type { Tree } from "../json.ts";
import { badRequest, StatusError } from "../status.ts";
import { subjectOf, type WriteOptions } from "./context.ts";

/**
 * Validates the fields of a body and returns it without unknown fields. These result in a 400 for fieldValidation
 * Strict and in a Warning header for Warn. Values of the wrong type are always rejected. Server-side apply rejects both
 * with the API server's 500 (kubernetes/kubernetes#122480). Kinds without a schema are not checked.
 */
export function checkFields(body: Tree, target: Target, options: WriteOptions, isApply: boolean): Tree {
  const schema = target.version.openapi;
  if (!schema) return body;
  const { value, unknown, misfits, broken } = conform(body, schema, resolved);
  if (isApply) checkApplied(target, unknown, misfits);
  // An applied configuration is partial. The resulting object is checked later.
  const problems = isApply ? misfits : [...misfits, ...broken];
  if (problems.length > 0) throw refusal(target, problems);
  if (unknown.length > 0 && options.validation !== "Ignore") {
    const warnings = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
    if (options.validation === "Strict")
      throw notHandled(target, `strict decoding error: ${warnings.join(", ")}`);
    for (const warning of warnings) options.warn(warning);
  }
  return value as Tree;
}

/** Throws a 422 if an object, in its stored form, violates a rule of its custom kind's schema. */
export function checkWhole(object: KubeObject, target: Target): void {
  const { definition, version } = target;
  if (!version.openapi || !definition.custom) return;
  const { broken } = conform(encodeVersion(object, definition, version), version.openapi, resolved);
  if (broken.length > 0) throw refusal(target, broken);
}

/** Throws a 422 if labels or annotations of an object are not valid. */
export function checkMetadata(object: KubeObject, target: Target): void {
  const { metadata } = object;
  refuse({ ...subjectOf(target), name: metadata.name ?? "" }, metadataProblems(object));
}

function checkApplied(
  { definition, version, namespace, name }: Target,
  unknown: string[],
  misfits: Misfit[],
): void {
  const problems = [
    ...unknown.map((path) => `.${path}: field not declared in schema`),
    ...misfits.map(({ path, why }) => `.${path}: ${why}`),
  ];
  if (problems.length === 0) return;
  const kind = `${apiVersionOf(definition, version)}, Kind=${definition.kind}`;
  throw new StatusError(
    500,
    "InternalError",
    `failed to create typed patch object (${namespace ?? ""}/${name ?? ""}; ${kind}): ${problems.join(", ")}`,
  );
}

// Built-in kinds fail to decode. Custom kinds fail validation.
function refusal(target: Target, misfits: Misfit[]): StatusError {
  const { definition } = target;
  const problems = misfits.map(({ path, why }) => `${path}: ${why}`).join(", ");
  if (!definition.custom) return notHandled(target, problems);
  const { group, plural, kind, name } = subjectOf(target);
  return new StatusError(422, "Invalid", `${kind}.${group} "${name}" is invalid: ${problems}`, {
    name,
    group,
    kind: plural,
    causes: misfits.map(({ path, why }) => ({ reason: "FieldValueInvalid", message: why, field: path })),
  });
}

function notHandled({ definition: { kind }, version }: Target, why: string): StatusError {
  return badRequest(`${kind} in version "${version.name}" cannot be handled as a ${kind}: ${why}`);
}
