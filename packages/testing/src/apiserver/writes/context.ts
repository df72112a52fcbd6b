import type { KubeObject } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { apiVersionOf, type Target } from "../catalogue/definition.ts";
import type { Writer } from "../fields/managed-fields.ts";
import { objectKey, timestamp } from "../json.ts";
import { notFound, type Subject } from "../status.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** Dependencies of all writes. */
export interface WriteContext {
  store: ObjectStore;
  catalogue: Catalogue;
  clock: Clock;
}

/** Options of a write request. */
export interface WriteOptions {
  /** Field manager recorded in managedFields. */
  manager: string;
  dryRun: boolean;
  /** How unknown fields are handled. */
  validation: "Strict" | "Warn" | "Ignore";
  /** Adds a warning to the response. */
  warn: (text: string) => void;
}

/** Result of a write. The object is in its stored form. */
export interface WriteResult {
  object: KubeObject;
  created: boolean;
}

/** Returns the subject of errors about a target. */
export function subjectOf({ definition, name }: Target): Subject {
  return { group: definition.group, plural: definition.plural, kind: definition.kind, name: name ?? "" };
}

/** Returns the stored object. Throws a 404 if it does not exist. */
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
