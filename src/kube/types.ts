/** The part of ObjectMeta that the agent reads or writes. */
export interface ObjectMeta {
  name?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Which fields a manager owns: https://kubernetes.io/docs/reference/using-api/server-side-apply/ */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  subresource?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
}

/** Any API object. Rooms that know a kind narrow it. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** A reference to an object, as logs and Events name it. */
export interface ObjectReference {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  uid?: string;
}

export interface GroupVersionKind {
  /** Empty for the core group. */
  group: string;
  version: string;
  kind: string;
}

/** A kind as the server serves it, found by discovery. */
export interface ApiResource extends GroupVersionKind {
  /** The plural name in paths: "nodes". */
  plural: string;
  namespaced: boolean;
  verbs: string[];
  /** Names of the subresources served: "status", "eviction". */
  subresources: string[];
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds; the client's default where absent. */
  deadlineMs?: number;
}

export interface ApplyOptions extends CallOptions {
  subresource?: string;
  /** Take fields from other managers. */
  force?: boolean;
}

export interface DeleteOptions extends CallOptions {
  preconditions?: { uid?: string; resourceVersion?: string };
  gracePeriodSeconds?: number;
}

export interface ListOptions extends CallOptions {
  namespace?: string;
  fieldSelector?: string;
  labelSelector?: string;
}

/**
 * Access to one API server. Every call has a deadline; failures are NodekeeperErrors whose code says what to do:
 * notFound, conflict, forbidden, unauthenticated, throttled (with retryAfterMs), invalid, gone, unsupported,
 * unavailable, deadline, stopped. No call retries by itself except once for a renewed token after a 401.
 */
export interface KubeClient {
  /** The resource that serves a kind, from cached discovery; undefined where the server has none. Re-asks the server at most every few seconds for a kind it did not know. */
  resolve(kind: GroupVersionKind, options?: CallOptions): Promise<ApiResource | undefined>;
  get(
    resource: ApiResource,
    name: string,
    options?: CallOptions & { namespace?: string },
  ): Promise<KubeObject>;
  /** Lists whole, page by page. */
  list(
    resource: ApiResource,
    options?: ListOptions,
  ): Promise<{ items: KubeObject[]; resourceVersion: string }>;
  create(
    resource: ApiResource,
    object: KubeObject,
    options?: CallOptions & { subresource?: string },
  ): Promise<KubeObject>;
  /** PUT; the object's metadata.resourceVersion is the precondition. */
  update(
    resource: ApiResource,
    object: KubeObject,
    options?: CallOptions & { subresource?: string },
  ): Promise<KubeObject>;
  /** Server-side apply with the client's field manager. */
  apply(resource: ApiResource, object: KubeObject, options?: ApplyOptions): Promise<KubeObject>;
  /** JSON merge patch (RFC 7396). */
  mergePatch(
    resource: ApiResource,
    name: string,
    patch: unknown,
    options?: CallOptions & { namespace?: string; subresource?: string },
  ): Promise<KubeObject>;
  delete(
    resource: ApiResource,
    name: string,
    options?: DeleteOptions & { namespace?: string },
  ): Promise<void>;
}

/** What a watcher tells. Calls come one after another, in the server's order; a throwing handler is logged and contained. */
export interface WatchHandler {
  /** The whole list, after start and whenever the watch had to begin anew; objects absent from it are gone. */
  onReplace(objects: KubeObject[]): void;
  onUpsert(object: KubeObject): void;
  onDelete(object: KubeObject): void;
}
