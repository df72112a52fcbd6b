import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { compact, isTree, type MutableTree, sameJson, without } from "../json.ts";
import { compareObjects } from "./compare.ts";
import { conflictError, type ManagerConflict } from "./conflicts.ts";
import { difference, emptySet, type FieldSet, intersection, isEmpty, union } from "./field-set.ts";
import { fieldsOf } from "./fields-of.ts";
import { fieldsLastAppliedByKubectl } from "./last-applied.ts";
import { mergeObjects } from "./merge.ts";
import { prune } from "./prune.ts";
import type { FieldSchema } from "./schema.ts";

/** A writer of fields: the managedFields entry without the fields. */
export interface Writer {
  manager: string;
  operation: "Apply" | "Update";
  /** API version of the request. */
  apiVersion: string;
  subresource?: string | undefined;
  /** RFC 3339 time in seconds. */
  time: string;
}

// Fields that the server sets on every object and no manager owns.
const SERVER_FIELDS = [
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "selfLink",
  "managedFields",
];

/** Returns the part of an object that can be owned. */
export function ownable(object: KubeObject): MutableTree {
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...rest } = object;
  const owned = without({ ...metadata }, ...SERVER_FIELDS);
  return Object.keys(owned).length > 0 ? { ...rest, metadata: owned } : rest;
}

/** Records an update, which takes its fields from all other managers. Returns `next` with managedFields. */
export function recordUpdate(
  live: KubeObject | undefined,
  next: KubeObject,
  writer: Writer,
  schema: FieldSchema | undefined,
): KubeObject {
  const { added, modified, removed } = compareObjects(live ? ownable(live) : {}, ownable(next), schema);
  const changed = union(added, modified);
  const takenAway = union(changed, removed);
  const before = baseEntries(live, next);
  const entries = before.map((entry) =>
    isSame(entry, writer) ? entry : withFields(entry, difference(fieldsIn(entry), takenAway)),
  );
  const previous = entries.find((entry) => isSame(entry, writer));
  const owned = union(difference(previous ? fieldsIn(previous) : emptySet, removed), changed);
  return withEntries(next, replaceEntry(entries, previous, writer, owned, false));
}

/**
 * Server-side apply. Merges the configuration into the live object, removes fields that this manager no longer applies
 * and no other manager owns, and records ownership. Without `force`, changing a field of another manager throws a 409.
 */
export function applyConfiguration(
  live: KubeObject,
  configuration: KubeObject,
  writer: Writer,
  schema: FieldSchema | undefined,
  force: boolean,
): KubeObject {
  const before = live.metadata.managedFields ?? [];
  const previous = before.find((entry) => isSame(entry, writer));
  const others = before.filter((entry) => entry !== previous);
  const owned = fieldsOf(ownable(configuration), schema);
  const merged = mergeObjects(live, configuration, schema);
  const managed = others.reduce((all, entry) => union(all, fieldsIn(entry)), owned);
  const next = previous ? prune(merged, fieldsIn(previous), managed, schema) : merged;

  const { added, modified, removed } = compareObjects(ownable(live), ownable(next), schema);
  const changed = union(added, modified);
  const contested = difference(changed, fieldsLastAppliedByKubectl(live, writer.manager, schema));
  const conflicts = findConflicts(others, contested);
  if (!force && conflicts.length > 0) throw conflictError(conflicts);

  const takenAway = union(changed, removed);
  const entries = before.map((entry) =>
    entry === previous ? entry : withFields(entry, difference(fieldsIn(entry), takenAway)),
  );
  return withEntries(next, replaceEntry(entries, previous, writer, owned, !isEmpty(takenAway)));
}

function findConflicts(others: ManagedFieldsEntry[], changed: FieldSet): ManagerConflict[] {
  return others
    .map((entry) => ({ entry, fields: intersection(fieldsIn(entry), changed) }))
    .filter(({ fields }) => !isEmpty(fields));
}

// managedFields in the body replace the entries, by which kubectl migrates ownership. A single empty entry resets them
// all.
function baseEntries(live: KubeObject | undefined, next: KubeObject): ManagedFieldsEntry[] {
  const brought = next.metadata.managedFields;
  if (brought === undefined || !brought.every(isTree)) return live?.metadata.managedFields ?? [];
  if (brought.length === 0) return live?.metadata.managedFields ?? [];
  return brought.filter((entry) => entry.manager !== undefined || entry.operation !== undefined);
}

function isSame(entry: ManagedFieldsEntry, writer: Writer): boolean {
  return (
    entry.manager === writer.manager &&
    entry.operation === writer.operation &&
    (entry.subresource ?? "") === (writer.subresource ?? "") &&
    (writer.operation === "Apply" || entry.apiVersion === writer.apiVersion)
  );
}

function fieldsIn(entry: ManagedFieldsEntry): FieldSet {
  return (entry.fieldsV1 as FieldSet | undefined) ?? emptySet;
}

function withFields(entry: ManagedFieldsEntry, fields: FieldSet): ManagedFieldsEntry {
  return { ...entry, fieldsV1: fields };
}

// The time changes only if the set or the values change, so that a no-op is not stored.
function replaceEntry(
  entries: ManagedFieldsEntry[],
  previous: ManagedFieldsEntry | undefined,
  writer: Writer,
  owned: FieldSet,
  valuesChanged: boolean,
): ManagedFieldsEntry[] {
  const unchanged =
    previous !== undefined &&
    !valuesChanged &&
    previous.apiVersion === writer.apiVersion &&
    sameJson(fieldsIn(previous), owned);
  const entry: ManagedFieldsEntry = unchanged
    ? previous
    : compact({
        manager: writer.manager,
        operation: writer.operation,
        apiVersion: writer.apiVersion,
        time: writer.time,
        fieldsType: "FieldsV1",
        fieldsV1: owned,
        subresource: writer.subresource || undefined,
      });
  return entries
    .filter((other) => other !== previous)
    .concat(entry)
    .filter((candidate) => !isEmpty(fieldsIn(candidate)))
    .sort(byOperationTimeAndName);
}

function byOperationTimeAndName(a: ManagedFieldsEntry, b: ManagedFieldsEntry): number {
  const text = (entry: ManagedFieldsEntry) =>
    [entry.operation, entry.time, entry.manager, entry.apiVersion, entry.subresource].join("\n");
  return text(a) < text(b) ? -1 : 1;
}

function withEntries(object: KubeObject, entries: ManagedFieldsEntry[]): KubeObject {
  const metadata = { ...object.metadata };
  if (entries.length > 0) metadata.managedFields = entries;
  else delete metadata.managedFields;
  return { ...object, metadata };
}
