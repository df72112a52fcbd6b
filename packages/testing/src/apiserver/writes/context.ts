import type { KubeObject } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { apiVersionOf, type Target } from "../catalogue/definition.ts";
import type { Writer } from "../fields/managed-fields.ts";
import { objectKey, timestamp } from "../json.ts";
import { notFound, type Subject } from "../status.ts";
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
  /** What happens to fields that the kind does not have. */
  validation: "Strict" | "Warn" | "Ignore";
  /** Sends the client a warning. */
  warn: (text: string) => void;
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
