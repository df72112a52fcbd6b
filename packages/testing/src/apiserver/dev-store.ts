import { randomUUID } from "node:crypto";
import type { KubeObject } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { decodeVersion, type ResourceDefinition } from "./catalogue/definition.ts";
import { compact, objectKey, timestamp } from "./json.ts";
import type { WriteContext } from "./writes/context.ts";
import { removeNow } from "./writes/delete.ts";

/**
 * Direct access to the objects of a development API server, for tests and seeds. Bypasses validation, ownership and
 * subresources, but watchers receive all changes. Resources are named "nodes", "pods", or "plural.group":
 * "resourceslices.resource.k8s.io".
 */
export interface DevStore {
  /** Revision of the last change. */
  readonly revision: number;
  get(resource: string, name: string, namespace?: string): KubeObject | undefined;
  list(resource: string, namespace?: string): KubeObject[];
  /** Creates or replaces an object including its status. Fields set by the server are added or preserved. */
  put(object: KubeObject): KubeObject;
  /** Removes an object immediately, regardless of finalizers and grace period. */
  delete(resource: string, name: string, namespace?: string): KubeObject | undefined;
  /** Discards the history of watches, so that older resourceVersions result in 410. */
  compact(): void;
}

export function createDevStore(context: WriteContext): DevStore {
  const { store, catalogue } = context;
  const find = (resource: string): ResourceDefinition => {
    const definition = catalogue.byName(resource);
    if (!definition)
      throw new NodekeeperError(
        "notFound",
        `the dev API server serves no resource ${JSON.stringify(resource)}`,
      );
    return definition;
  };
  return {
    get revision() {
      return store.revision;
    },
    get: (resource, name, namespace) => store.get(find(resource).storage, objectKey(namespace, name)),
    list(resource, namespace) {
      const objects = store.list(find(resource).storage);
      return namespace === undefined
        ? objects
        : objects.filter(({ metadata }) => metadata.namespace === namespace);
    },
    put: (object) => putWhole(context, object),
    delete(resource, name, namespace) {
      const definition = find(resource);
      const object = store.get(definition.storage, objectKey(namespace, name));
      return object && removeNow(context, definition, object, false);
    },
    compact: () => store.hub.compact(store.revision),
  };
}

function putWhole({ store, catalogue, clock }: WriteContext, given: KubeObject): KubeObject {
  const served = catalogue.byKind(given.apiVersion ?? "", given.kind ?? "");
  if (!served)
    throw new NodekeeperError(
      "notFound",
      `the dev API server serves no ${given.kind} of ${given.apiVersion}`,
    );
  const { definition, version } = served;
  const { name, namespace } = given.metadata;
  if (!name || (namespace !== undefined) !== definition.namespaced) {
    throw new NodekeeperError(
      "invalid",
      `${definition.kind}: needs a name, and a namespace exactly if it is namespaced`,
    );
  }
  const before = store.get(definition.storage, objectKey(namespace, name))?.metadata;
  const metadata = compact({
    ...given.metadata,
    uid: given.metadata.uid ?? before?.uid ?? randomUUID(),
    creationTimestamp:
      given.metadata.creationTimestamp ?? before?.creationTimestamp ?? timestamp(clock.now()),
    generation: given.metadata.generation ?? before?.generation ?? (definition.generation ? 1 : undefined),
  });
  return store.put(
    definition.storage,
    decodeVersion({ ...given, metadata } as KubeObject, definition, version),
  );
}
