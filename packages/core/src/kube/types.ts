/** The fields of ObjectMeta that the agent uses. */
export interface ObjectMeta {
  name?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
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

/** Fields owned by a manager: https://kubernetes.io/docs/reference/using-api/server-side-apply/ */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  subresource?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
}

/** Any API object. Modules that use a kind narrow the type. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** A reference to an object, as used in logs and Events. */
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

/** A resource found by discovery. */
export interface ApiResource extends GroupVersionKind {
  /** Plural name in paths: "nodes". */
  plural: string;
  namespaced: boolean;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** In milliseconds. Default: the client's deadline. */
  deadlineMs?: number;
  /** Parses a response or a watch event. Default: JSON.parse, which rounds integers beyond 2^53. */
  parse?: (text: string) => unknown;
}

export interface WriteOptions extends CallOptions {
  subresource?: string;
  /** The server validates the request without persisting it (dryRun=All). */
  dryRun?: boolean;
}

export interface ApplyOptions extends WriteOptions {
  /** Takes ownership of fields from other managers (force). */
  force?: boolean;
  /** Field manager. Default: the client's. */
  fieldManager?: string;
}

export interface DeleteOptions extends CallOptions {
  preconditions?: { uid?: string; resourceVersion?: string };
  gracePeriodSeconds?: number;
}

export interface GetOptions extends CallOptions {
  namespace?: string;
  /** "0": any version, from the server's cache, without load on etcd. Default: the newest. */
  resourceVersion?: "0";
}

export interface ListOptions extends CallOptions {
  namespace?: string;
  fieldSelector?: string;
  labelSelector?: string;
  /**
   * The list is not older than this version and served from the watch cache, without load on etcd. "0": any version.
   * Default: the newest. If the server does not reach the version within a few seconds, it responds with the cause
   * ResourceVersionTooLarge.
   */
  resourceVersion?: string;
  /** Objects per page, at least 1. Default 500. Smaller pages of large objects need less memory. */
  pageSize?: number;
}

/**
 * Access to one API server. Every call has a deadline. Failures are NodekeeperErrors with one of these codes: notFound,
 * conflict, forbidden, unauthenticated, throttled (with retryAfterMs), invalid, expired, unsupported, unavailable,
 * deadline, stopped, exhausted (an object or response is too large, or too many calls are in progress). Calls are not
 * retried, with two exceptions: once after a 401 if the credentials were renewed, and a GET on a kept-alive connection
 * that the server had just closed.
 */
export interface KubeClient {
  /**
   * Returns the resource that serves a kind, from cached discovery. Undefined if the server does not serve it, which is
   * cached for a few seconds.
   */
  resolve(kind: GroupVersionKind, options?: CallOptions): Promise<ApiResource | undefined>;
  get(resource: ApiResource, name: string, options?: GetOptions): Promise<KubeObject>;
  /** Lists all pages. */
  list(
    resource: ApiResource,
    options?: ListOptions,
  ): Promise<{ items: KubeObject[]; resourceVersion: string }>;
  create(resource: ApiResource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** PUT. The object's metadata.resourceVersion is the precondition. */
  update(resource: ApiResource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** Server-side apply, by default with the client's field manager. */
  apply(resource: ApiResource, object: KubeObject, options?: ApplyOptions): Promise<KubeObject>;
  /** JSON merge patch (RFC 7396). */
  mergePatch(
    resource: ApiResource,
    name: string,
    patch: unknown,
    options?: CallOptions & { namespace?: string; subresource?: string },
  ): Promise<KubeObject>;
  /** JSON patch (RFC 6902). */
  jsonPatch(
    resource: ApiResource,
    name: string,
    patch: readonly JsonPatchOperation[],
    options?: CallOptions & { namespace?: string; subresource?: string; fieldManager?: string },
  ): Promise<KubeObject>;
  delete(
    resource: ApiResource,
    name: string,
    options?: DeleteOptions & { namespace?: string },
  ): Promise<void>;
}

/** An operation of RFC 6902. The server refuses the whole patch if a `test` fails. */
export type JsonPatchOperation =
  | { op: "add" | "replace" | "test"; path: string; value: unknown }
  | { op: "remove"; path: string };

/** A watch event. Its object has at least metadata. */
export interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  object: KubeObject;
}

export interface WatchOptions extends Omit<ListOptions, "resourceVersion" | "pageSize"> {
  signal: AbortSignal;
  /** Version after which events are sent. */
  resourceVersion: string;
  /** Time after which the server ends the watch. */
  timeoutSeconds: number;
  /**
   * The watch fails with `unavailable` if the server is silent for longer, or earlier if it sends bookmarks. In
   * milliseconds.
   */
  inactivityMs: number;
  onOpen?(): void;
  /** Called with each event in order and its length in characters. If it throws, the watch fails with that error. */
  onEvent(event: WatchEvent, length: number): void;
  /**
   * Called with the first `watchHeadLength` characters of each raw event. Returns the resource version of an event that
   * is already known and need not be parsed, such as the agent's own write.
   */
  knownVersion?(head: string): string | undefined;
  /** Called instead of `onEvent` for a known event. */
  onKnown?(resourceVersion: string): void;
}

/** Number of characters of an event that `knownVersion` receives. */
export const watchHeadLength = 1_024;

/** Access to a non-resource path, such as "/metrics". */
export interface PathQuestion {
  /** Such as "get". */
  verb: string;
  path: string;
}

/** Access to a resource. `group` is empty for the core group. */
export interface AccessQuestion {
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
  name?: string;
  namespace?: string;
}

export interface AccessAnswer {
  allowed: boolean;
  /** The authorizer's reason; may be empty. */
  reason: string;
}

/** The user of a token, as determined by the API server. */
export interface TokenUser {
  /** Such as "system:serviceaccount:kube-system:pressure". */
  username: string;
  uid: string;
  groups: string[];
  extra: Record<string, string[]>;
}

export interface TokenAnswer {
  /** Undefined if the token is invalid. */
  user: TokenUser | undefined;
  /** Why the token is invalid; may be empty. */
  reason: string;
}

export interface ServerVersion {
  /** Such as "v1.34.1". */
  gitVersion: string;
  major: string;
  minor: string;
  platform: string;
}

/** The client that `createKubeClient` returns. Adds the calls for watchers, commands and the preflight. */
export interface KubeApiClient extends KubeClient {
  /**
   * Calls `visit` with each object of a list. Keeps only one page in memory, so the list may exceed the 64 MiB to
   * which `list` is limited. If the continue token expires, the list is restarted and `visit` is called with the same
   * objects again.
   */
  visit(resource: ApiResource, visit: (object: KubeObject) => void, options?: ListOptions): Promise<void>;
  /**
   * Runs one watch. Resolves when the server ends it. Rejects as every call does, with `expired` if the requested
   * version is no longer available, and with MalformedStreamError if the stream is malformed.
   */
  watch(resource: ApiResource, options: WatchOptions): Promise<void>;
  /** Clears the discovery cache, so that the next lookups send new requests. */
  forgetDiscovery(): void;
  serverVersion(options?: CallOptions): Promise<ServerVersion>;
  /** Checks the agent's own permissions by a SelfSubjectAccessReview. */
  reviewAccess(question: AccessQuestion, options?: CallOptions): Promise<AccessAnswer>;
  /** Determines the user of a token by a TokenReview. */
  reviewToken(token: string, options?: CallOptions): Promise<TokenAnswer>;
  /** Checks the permissions of another user by a SubjectAccessReview. */
  reviewAccessOf(
    user: TokenUser,
    question: AccessQuestion | PathQuestion,
    options?: CallOptions,
  ): Promise<AccessAnswer>;
  /** Closes all connections. Calls in progress fail with `stopped`. */
  close(): void;
}

/** Callbacks of a watcher, called sequentially in the server's order. Their errors are logged and do not propagate. */
export interface WatchHandler {
  /**
   * Called with the complete list at startup and whenever the watch had to be restarted with a list. Objects that are
   * not in the list were deleted. `resourceVersion` is that of the list, which may lack later writes.
   */
  onReplace(objects: KubeObject[], resourceVersion: string): void;
  onUpsert(object: KubeObject): void;
  onDelete(object: KubeObject): void;
  /** Called when a watch opens: the first one, or one that follows another. */
  onOpen?(): void;
  /** Called at a bookmark, which the API server sends about once a minute: all changes before it were delivered. */
  onBookmark?(): void;
  /** See WatchOptions.knownVersion. */
  knownVersion?(head: string): string | undefined;
}
