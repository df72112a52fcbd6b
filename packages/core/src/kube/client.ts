import { NodekeeperError } from "../lib/index.ts";
import { type ApiRequest, Connection, type ConnectionOptions, nameOf } from "./connection.ts";
import { Discovery } from "./discovery.ts";
import { listWhole, visitList } from "./list.ts";
import { apiVersionOf, asObject, typed } from "./objects.ts";
import { collectionPath, objectPath, requireNamespace } from "./paths.ts";
import { readServerVersion } from "./preflight.ts";
import { reviewAccess, reviewAccessOf, reviewToken } from "./reviews.ts";
import type { ApiResource, DeleteOptions, KubeApiClient, KubeObject, WriteOptions } from "./types.ts";
import { watchOnce } from "./watch.ts";

export interface KubeClientOptions extends ConnectionOptions {
  /** Field manager of writes. Default "nodekeeper". */
  fieldManager?: string;
}

/** Creates a client of one API server. It connects on the first call and does not keep the process alive. */
export function createKubeClient(options: KubeClientOptions): KubeApiClient {
  const { fieldManager = "nodekeeper", ...connectionOptions } = options;
  const connection = new Connection(connectionOptions);
  const discovery = new Discovery(connection, options.clock);

  async function objectCall(resource: ApiResource, request: Omit<ApiRequest, "resource">, callOptions = {}) {
    const { value } = await connection.call({ ...request, resource: resource.plural }, callOptions);
    const object = asObject(nameOf(request), value);
    return object.kind ? object : typed(resource, object);
  }

  const writeQuery = ({ dryRun }: WriteOptions) => ({ fieldManager, ...(dryRun ? { dryRun: "All" } : {}) });

  return {
    resolve: (kind, callOptions) => discovery.resolve(kind, callOptions),
    forgetDiscovery: () => discovery.forget(),

    async get(resource, name, callOptions = {}) {
      const path = objectPath(resource, { name, ...callOptions });
      const { resourceVersion } = callOptions;
      const request = { method: "GET", path, query: { resourceVersion }, verb: "get" };
      return await objectCall(resource, request, callOptions);
    },

    list: (resource, listOptions) => listWhole(connection, resource, listOptions),
    visit: (resource, visit, listOptions) => visitList(connection, resource, visit, listOptions),
    watch: (resource, watchOptions) => watchOnce(connection, options.clock, resource, watchOptions),

    async create(resource, object, callOptions = {}) {
      const { subresource } = callOptions;
      const { name, namespace } = object.metadata;
      requireNamespace(resource, namespace);
      const path = subresource
        ? objectPath(resource, { name, namespace, subresource })
        : collectionPath(resource, namespace);
      // A subresource has a different kind (Eviction), which the caller sets.
      const body = subresource ? object : typed(resource, object);
      return await objectCall(
        resource,
        { method: "POST", path, query: writeQuery(callOptions), body, verb: "create" },
        callOptions,
      );
    },

    async update(resource, object, callOptions = {}) {
      const path = objectPath(resource, pathOf(object, callOptions.subresource));
      const body = typed(resource, object);
      return await objectCall(
        resource,
        { method: "PUT", path, query: writeQuery(callOptions), body, verb: "update" },
        callOptions,
      );
    },

    async apply(resource, object, callOptions = {}) {
      const request = {
        method: "PATCH",
        path: objectPath(resource, pathOf(object, callOptions.subresource)),
        query: {
          ...writeQuery(callOptions),
          ...(callOptions.fieldManager ? { fieldManager: callOptions.fieldManager } : {}),
          force: callOptions.force ?? false,
        },
        body: { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind },
        // JSON is valid YAML, and older servers accept only the YAML type.
        contentType: "application/apply-patch+yaml",
        verb: "apply",
      };
      return await objectCall(resource, request, callOptions);
    },

    async mergePatch(resource, name, patch, callOptions = {}) {
      const request = {
        method: "PATCH",
        path: objectPath(resource, { name, ...callOptions }),
        query: { fieldManager },
        body: patch,
        contentType: "application/merge-patch+json",
        verb: "patch",
      };
      return await objectCall(resource, request, callOptions);
    },

    async jsonPatch(resource, name, patch, { fieldManager: manager = fieldManager, ...callOptions } = {}) {
      const request = {
        method: "PATCH",
        path: objectPath(resource, { name, ...callOptions }),
        query: { fieldManager: manager },
        body: patch,
        contentType: "application/json-patch+json",
        verb: "patch",
      };
      return await objectCall(resource, request, callOptions);
    },

    async delete(resource, name, deleteOptions = {}) {
      const path = objectPath(resource, { name, namespace: deleteOptions.namespace });
      const request = { method: "DELETE", path, body: deletionOf(deleteOptions), verb: "delete" };
      await connection.call({ ...request, resource: resource.plural }, deleteOptions);
    },

    serverVersion: (callOptions) => readServerVersion(connection, callOptions),
    reviewAccess: (question, callOptions) => reviewAccess(connection, question, callOptions),
    reviewToken: (token, callOptions) => reviewToken(connection, token, callOptions),
    reviewAccessOf: (user, question, callOptions) => reviewAccessOf(connection, user, question, callOptions),
    close: () => connection.close(),
  };
}

function deletionOf({ preconditions, gracePeriodSeconds }: DeleteOptions): Record<string, unknown> {
  return {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(preconditions ? { preconditions } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
  };
}

function pathOf(object: KubeObject, subresource: string | undefined) {
  const { name, namespace } = object.metadata;
  if (!name) throw new NodekeeperError("invalid", `${object.kind ?? "object"}: metadata.name is needed`);
  return { name, namespace, subresource };
}
