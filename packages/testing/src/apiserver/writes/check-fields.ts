import type { KubeObject } from "@nodekeeper/core/kube";
import { apiVersionOf, encodeVersion, type Target } from "../catalogue/definition.ts";
import { resolved } from "../catalogue/open-api.ts";
import { conform, type Misfit } from "../fields/conform.ts";
import type { Tree } from "../json.ts";
import { badRequest, StatusError } from "../status.ts";
import { subjectOf, type WriteOptions } from "./context.ts";

/**
 * The body without the fields that its kind does not have: they are reported as `fieldValidation` demands, a 400 for Strict,
 * a Warning header for Warn. Values of a wrong type are refused always. Server-side apply takes neither, with the 500 of the
 * API server (kubernetes/kubernetes#122480). Kinds without a schema are not checked.
 */
export function checkFields(body: Tree, target: Target, options: WriteOptions, isApply: boolean): Tree {
  const schema = target.version.openapi;
  if (!schema) return body;
  const { value, unknown, misfits, broken } = conform(body, schema, resolved);
  if (isApply) checkApplied(target, unknown, misfits);
  // What is applied is a part of an object: the whole is checked when it is there.
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

/** Throws a 422 for an object, in its stored form, that breaks a rule of its custom kind's schema. */
export function checkWhole(object: KubeObject, target: Target): void {
  const { definition, version } = target;
  if (!version.openapi || !definition.custom) return;
  const { broken } = conform(encodeVersion(object, definition, version), version.openapi, resolved);
  if (broken.length > 0) throw refusal(target, broken);
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

// Kubernetes' own kinds fail to decode; custom ones fail their validation.
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
