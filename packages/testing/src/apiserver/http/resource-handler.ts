import type { KubeObject } from "@nodekeeper/core/kube";
import { apiVersionOf, type Target } from "../catalogue/definition.ts";
import { isTree, keyOf } from "../json.ts";
import { type Predicate, parseSelectors } from "../selectors.ts";
import { badRequest, invalid, methodNotAllowed, notFound, success, unsupportedMediaType } from "../status.ts";
import {
  findLive,
  subjectOf,
  type WriteContext,
  type WriteOptions,
  type WriteResult,
} from "../writes/context.ts";
import { createObject } from "../writes/create.ts";
import { type DeleteRequest, deleteObject } from "../writes/delete.ts";
import { evictPod } from "../writes/evict.ts";
import { applyObject, type PatchType, patchObject, updateObject } from "../writes/update.ts";
import type { Call } from "./call.ts";
import { type ListPager, readRevision } from "./list.ts";
import { formOf, representList, representObject, type View } from "./representation.ts";
import type { WatchRequest } from "./watch.ts";

/** Dependencies of resource requests. */
export interface ResourceServices {
  context: WriteContext;
  pager: ListPager;
  watch(call: Call, request: WatchRequest): void;
}

const PATCH_TYPES: Record<string, PatchType | "apply"> = {
  "application/merge-patch+json": "merge",
  "application/json-patch+json": "json",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

const DEFAULT_WATCH_TIMEOUT_MS = 30 * 60_000;
const MAX_MANAGER_LENGTH = 128;

/** Handles a resource request whose body has been read. */
export function handleResource(services: ResourceServices, call: Call, target: Target): void {
  const isGet = call.method === "GET" || call.method === "HEAD";
  if (target.subresource === "eviction") handleEviction(services, call, target);
  else if (isGet && call.flag("watch")) startWatch(services, call, target);
  else if (target.name === undefined) handleCollection(services, call, target);
  else if (isGet) getObject(services, call, target);
  else if (call.method === "DELETE" && !target.subresource) deleteOne(services, call, target);
  else answer(services, call, target, writeObject(services.context, call, target));
}

function handleCollection(services: ResourceServices, call: Call, target: Target): void {
  if (call.method === "GET" || call.method === "HEAD") listObjects(services, call, target);
  else if (call.method === "DELETE") deleteMatching(services, call, target);
  else if (call.method !== "POST") throw methodNotAllowed();
  else answer(services, call, target, createObject(services.context, target, call.body, optionsOf(call)));
}

function writeObject(context: WriteContext, call: Call, target: Target): WriteResult {
  if (call.method === "PUT") return updateObject(context, target, call.body, optionsOf(call));
  if (call.method === "PATCH") return patch(context, call, target);
  throw methodNotAllowed();
}

function viewOf({ context }: ResourceServices, call: Call, { definition, version }: Target): View {
  return { definition, version, form: formOf(call), now: context.clock.now() };
}

function answer(
  services: ResourceServices,
  call: Call,
  target: Target,
  { object, created }: WriteResult,
): void {
  call.json(created ? 201 : 200, representObject(object, viewOf(services, call, target)));
}

function getObject(services: ResourceServices, call: Call, target: Target): void {
  readRevision(call.query.get("resourceVersion"), services.context.store.revision);
  const object = findLive(services.context, target);
  call.json(200, representObject(object, viewOf(services, call, target)));
}

function listObjects(services: ResourceServices, call: Call, target: Target): void {
  const { context, pager } = services;
  const { storage } = target.definition;
  const limit = Math.max(Number(call.query.get("limit") ?? 0) || 0, 0);
  const token = call.query.get("continue");
  const { revision } = context.store;
  if (!token) readRevision(call.query.get("resourceVersion"), revision);
  const page = token
    ? pager.next(storage, token, limit)
    : pager.first(storage, matching(context, call, target), revision, limit);
  call.json(200, representList(page.items, page.metadata, viewOf(services, call, target)));
}

function matching({ store }: WriteContext, call: Call, target: Target): KubeObject[] {
  const matches = predicateOf(call, target);
  const objects = store.list(target.definition.storage);
  return matches ? objects.filter(matches) : objects;
}

function predicateOf(call: Call, { definition, namespace, name }: Target): Predicate | undefined {
  const labels = call.query.get("labelSelector") ?? undefined;
  const fields = call.query.get("fieldSelector") ?? undefined;
  const selected = parseSelectors(definition, labels, fields);
  if (!namespace && name === undefined) return selected;
  return (object) => {
    const { metadata } = object;
    if (namespace && metadata.namespace !== namespace) return false;
    return (name === undefined || metadata.name === name) && (selected?.(object) ?? true);
  };
}

function startWatch(services: ResourceServices, call: Call, target: Target): void {
  const seconds = Number(call.query.get("timeoutSeconds") ?? 0);
  const since = readRevision(call.query.get("resourceVersion"), services.context.store.revision);
  services.watch(call, {
    view: viewOf(services, call, target),
    matches: predicateOf(call, target),
    since,
    sendInitialEvents: call.flag("sendInitialEvents"),
    bookmarks: call.flag("allowWatchBookmarks"),
    timeoutMs: seconds > 0 ? seconds * 1000 : DEFAULT_WATCH_TIMEOUT_MS,
  });
}

function patch(context: WriteContext, call: Call, target: Target): WriteResult {
  const type = Object.hasOwn(PATCH_TYPES, call.mediaType) ? PATCH_TYPES[call.mediaType] : undefined;
  if (!type) throw unsupportedMediaType(Object.keys(PATCH_TYPES));
  if (type !== "apply") {
    if (call.flag("force"))
      throw badRequest(
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      );
    return patchObject(context, target, type, call.body, optionsOf(call));
  }
  if (!call.query.get("fieldManager")) {
    const subject = { group: "meta.k8s.io", plural: "", kind: "PatchOptions", name: "" };
    throw invalid(
      subject,
      "fieldManager",
      "Required value: is required for apply patch",
      "FieldValueRequired",
    );
  }
  return applyObject(context, target, call.body, { ...optionsOf(call), force: call.flag("force") });
}

function deleteOne(services: ResourceServices, call: Call, target: Target): void {
  const { object, removed } = deleteObject(services.context, target, deleteRequestOf(call));
  if (!removed) {
    call.json(200, representObject(object, viewOf(services, call, target)));
    return;
  }
  const { group, plural } = subjectOf(target);
  const { uid } = object.metadata;
  call.json(
    200,
    success({ name: target.name!, ...(group ? { group } : {}), kind: plural, ...(uid ? { uid } : {}) }),
  );
}

function deleteMatching(services: ResourceServices, call: Call, target: Target): void {
  const { context } = services;
  const request = deleteRequestOf(call);
  const items = matching(context, call, target);
  for (const object of items) {
    const { namespace, name } = object.metadata;
    // A previous deletion of this request may have removed it as a dependent.
    const there = context.store.get(target.definition.storage, keyOf(object));
    if (there) deleteObject(context, { ...target, namespace, name }, request);
  }
  const metadata = { resourceVersion: String(context.store.revision) };
  call.json(200, representList(items, metadata, viewOf(services, call, target)));
}

function handleEviction({ context }: ResourceServices, call: Call, target: Target): void {
  if (call.method !== "POST") throw methodNotAllowed();
  evictPod(context, target, call.body, optionsOf(call).dryRun);
  call.json(201, success(undefined, 201));
}

function optionsOf(call: Call): WriteOptions {
  const manager =
    call.query.get("fieldManager") || call.request.headers["user-agent"]?.split("/")[0] || "unknown";
  return {
    manager: manager.slice(0, MAX_MANAGER_LENGTH),
    dryRun: isDryRun(call.query.getAll("dryRun")),
    validation: validationOf(call),
    warn: (text) => call.warn(text),
  };
}

function validationOf(call: Call): WriteOptions["validation"] {
  const given = call.query.get("fieldValidation") || "Warn";
  const found = (["Strict", "Warn", "Ignore"] as const).find((each) => each === given);
  if (found) return found;
  throw badRequest(
    `fieldValidation: Unsupported value: ${JSON.stringify(given)}: supported values: "Ignore", "Strict", "Warn"`,
  );
}

function isDryRun(values: unknown): boolean {
  if (!Array.isArray(values) || values.length === 0) return false;
  if (values.every((value) => value === "All")) return true;
  throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(values)}: supported values: "All"`);
}

// DeleteOptions are in the body. Query parameters are the older form and still in use.
function deleteRequestOf(call: Call): DeleteRequest {
  const body = isTree(call.body) ? call.body : {};
  const grace = body.gracePeriodSeconds ?? call.query.get("gracePeriodSeconds");
  if (grace !== undefined && grace !== null && !/^\d+$/.test(String(grace))) {
    throw badRequest(
      `gracePeriodSeconds: Invalid value: ${JSON.stringify(grace)}: must be a whole number of seconds`,
    );
  }
  const policy = body.propagationPolicy ?? call.query.get("propagationPolicy");
  return {
    ...(grace !== undefined && grace !== null ? { gracePeriodSeconds: Number(grace) } : {}),
    ...(isTree(body.preconditions) ? { preconditions: body.preconditions } : {}),
    ...(typeof policy === "string" ? { propagationPolicy: policy } : {}),
    dryRun: isDryRun([...call.query.getAll("dryRun"), ...(Array.isArray(body.dryRun) ? body.dryRun : [])]),
  };
}

/** Returns the target. Throws a 404 if the subresource is not served or the scope does not match. */
export function checkTarget(target: Target): Target {
  const { definition, namespace, name, subresource } = target;
  const known =
    subresource === undefined ||
    (subresource === "status" && definition.status) ||
    (subresource === "eviction" && definition.eviction === true);
  const scoped = namespace === undefined || definition.namespaced;
  const addressed = name === undefined || !definition.namespaced || namespace !== undefined;
  if (known && scoped && addressed) return target;
  const subject = {
    ...subjectOf(target),
    plural: `${definition.plural}${subresource ? `/${subresource}` : ""}`,
  };
  throw notFound({ ...subject, name: name ?? apiVersionOf(definition, target.version) });
}
