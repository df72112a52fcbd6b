import { randomBytes, randomUUID } from "node:crypto";
import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import type { Target } from "../catalogue/definition.ts";
import { applyConfiguration, recordUpdate } from "../fields/managed-fields.ts";
import { compact, keyOf, timestamp } from "../json.ts";
import { alreadyExists, badRequest, invalid, notFound } from "../status.ts";
import { checkMetadata, checkWhole } from "./check-fields.ts";
import { subjectOf, type WriteContext, type WriteOptions, type WriteResult, writerFor } from "./context.ts";
import { readBody } from "./read-body.ts";

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
// Leaves space for the generated suffix within the length of a DNS label, as in the API server.
const MAX_GENERATED_BASE = 58;

/** Handles POST of a new object. */
export function createObject(
  context: WriteContext,
  target: Target,
  body: unknown,
  options: WriteOptions,
): WriteResult {
  if (target.definition.namespaced && !target.namespace) {
    throw badRequest("an empty namespace may not be set during creation");
  }
  const object = readBody(body, target, options);
  if (object.metadata.resourceVersion) {
    throw badRequest("resourceVersion should not be set on objects to be created");
  }
  const fresh = prepareNew(context, target, object);
  const writer = writerFor(context, target, "Update", options.manager);
  const recorded = recordUpdate(undefined, fresh, writer, target.definition.mergeRules());
  return { object: insert(context, target, recorded, options.dryRun), created: true };
}

/** Creates an object by server-side apply. */
export function createByApply(
  context: WriteContext,
  target: Target,
  configuration: KubeObject,
  options: WriteOptions,
): WriteResult {
  if (configuration.metadata.uid !== undefined) {
    throw badRequest("metadata.uid: an object to be created by apply must not have one");
  }
  const named = { ...configuration, metadata: { ...configuration.metadata, name: target.name! } };
  const writer = writerFor(context, target, "Apply", options.manager);
  const applied = applyConfiguration({ metadata: {} }, named, writer, target.definition.mergeRules(), true);
  const fresh = prepareNew(context, target, applied);
  checkWhole(fresh, target);
  return { object: insert(context, target, fresh, options.dryRun), created: true };
}

function prepareNew(context: WriteContext, target: Target, object: KubeObject): KubeObject {
  const { definition } = target;
  const time = timestamp(context.clock.now());
  const metadata = newMetadata(object.metadata, definition.generation, time);
  checkName(target, metadata);
  const { status, ...rest } = object;
  const keepsStatus = !definition.status || definition.keepsStatusOnCreate;
  const fresh: KubeObject = { ...rest, metadata, ...(keepsStatus && status !== undefined ? { status } : {}) };
  checkMetadata(fresh, target);
  definition.validate?.(fresh);
  return definition.onCreate?.(fresh, time) ?? fresh;
}

function newMetadata(
  given: ObjectMeta & { generateName?: string },
  counted: boolean,
  time: string,
): ObjectMeta {
  const base = given.generateName?.slice(0, MAX_GENERATED_BASE);
  const { deletionTimestamp: _deletion, resourceVersion: _revision, ...kept } = given;
  return compact({
    ...kept,
    name: given.name || (base && base + randomBytes(3).toString("hex").slice(0, 5)),
    uid: randomUUID(),
    creationTimestamp: time,
    generation: counted ? 1 : undefined,
  }) as ObjectMeta;
}

function checkName(target: Target, { name }: ObjectMeta): void {
  const subject = subjectOf({ ...target, name });
  if (!name)
    throw invalid(
      subject,
      "metadata.name",
      "Required value: name or generateName is required",
      "FieldValueRequired",
    );
  if (name.length <= MAX_NAME && NAME.test(name)) return;
  const rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
  throw invalid(subject, "metadata.name", `Invalid value: ${JSON.stringify(name)}: ${rule}`);
}

function insert({ store }: WriteContext, target: Target, object: KubeObject, dryRun: boolean): KubeObject {
  const { definition, namespace } = target;
  const subject = subjectOf({ ...target, name: object.metadata.name });
  if (namespace && !store.get("namespaces", namespace)) {
    throw notFound({ group: "", plural: "namespaces", kind: "Namespace", name: namespace });
  }
  if (store.get(definition.storage, keyOf(object))) throw alreadyExists(subject);
  return dryRun ? object : store.put(definition.storage, object);
}
