/** The part of ObjectMeta that the agent reads or writes. */
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

/** Any API object. Modules that use a kind narrow it. */
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

export interface WriteOptions extends CallOptions {
  subresource?: string;
  /** The server checks the request and changes nothing (dryRun=All). */
  dryRun?: boolean;
}

export interface ApplyOptions extends WriteOptions {
  /** Take fields from other managers (force). */
  force?: boolean;
  /** The field manager. Default: the client's. */
  fieldManager?: string;
}

export interface DeleteOptions extends CallOptions {
  preconditions?: { uid?: string; resourceVersion?: string };
  gracePeriodSeconds?: number;
}

export interface ListOptions extends CallOptions {
  namespace?: string;
  fieldSelector?: string;
  labelSelector?: string;
  /**
   * Not older than this version, from the server's cache and at no cost to etcd; "0" for any. The newest where absent. With
   * one that the server does not have yet it answers with the cause ResourceVersionTooLarge after a few seconds.
   */
  resourceVersion?: string;
  /** Objects asked for at once, 1 or more. Default 500; fewer of large ones need less memory. */
  pageSize?: number;
  /** Integers beyond 2^53 are bigints; where false, which is the default, the nearest doubles. */
  exactIntegers?: boolean;
}

/**
 * Access to one API server. Every call has a deadline; failures are NodekeeperErrors with one of these codes:
 * notFound, conflict, forbidden, unauthenticated, throttled (with retryAfterMs), invalid, expired, unsupported,
 * unavailable, deadline, stopped, exhausted (an object or an answer beyond its size, too many calls). No call retries by itself except
 * once with renewed credentials after a 401, and a GET that met a kept connection the server had just closed.
 */
export interface KubeClient {
  /** The resource that serves a kind, from cached discovery; undefined where the server has none. For a kind that is not served the server is asked again every few seconds at most. */
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
  create(resource: ApiResource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** PUT; the object's metadata.resourceVersion is the precondition. */
  update(resource: ApiResource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
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

/** One event of a watch; its object has at least metadata. */
export interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  object: KubeObject;
}

export interface WatchOptions extends Omit<ListOptions, "resourceVersion" | "pageSize"> {
  signal: AbortSignal;
  /** Events after this version are sent. */
  resourceVersion: string;
  /** The server ends the watch after this time. */
  timeoutSeconds: number;
  /** The watch fails with `unavailable` when the server is silent for longer; sooner when it sends bookmarks. Milliseconds. */
  inactivityMs: number;
  onOpen?(): void;
  /** Called with each event in turn; must not throw. */
  onEvent(event: WatchEvent): void;
  /**
   * Called with the first characters of each event as it came, at most `watchHeadLength`. Answers the resource version
   * of an event that is known already and need not be parsed, such as the agent's own write.
   */
  knownVersion?(head: string): string | undefined;
  /** Called in place of `onEvent` for an event that is known. */
  onKnown?(resourceVersion: string): void;
}

/** How much of an event `knownVersion` sees, characters. */
export const watchHeadLength = 1_024;

/** May an account do this to a path that is no resource, such as "/metrics"? */
export interface PathQuestion {
  /** "get" */
  verb: string;
  path: string;
}

/** May an account do this? `group` is empty for the core group. */
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

/** The account of a token, from the API server. */
export interface TokenUser {
  /** "system:serviceaccount:kube-system:pressure" */
  username: string;
  uid: string;
  groups: string[];
  extra: Record<string, string[]>;
}

export interface TokenAnswer {
  /** Undefined where the token is invalid. */
  user: TokenUser | undefined;
  /** Why it is invalid; may be empty. */
  reason: string;
}

export interface ServerVersion {
  /** "v1.34.1" */
  gitVersion: string;
  major: string;
  minor: string;
  platform: string;
}

/** What `createKubeClient` makes: the calls that all modules use, and those for watchers and the preflight. */
export interface KubeApiClient extends KubeClient {
  /**
   * One watch, from opening to its end: resolves when the server ends it, rejects as every call does, with `expired`
   * when the version asked for is no longer kept, and with MalformedStreamError when the stream is malformed.
   */
  watch(resource: ApiResource, options: WatchOptions): Promise<void>;
  /** Clears the discovery cache, so that the next lookups ask the server. */
  forgetDiscovery(): void;
  serverVersion(options?: CallOptions): Promise<ServerVersion>;
  /** Every group and version served: "v1", "apps/v1", ... */
  groupVersions(options?: CallOptions): Promise<string[]>;
  /** Asks the server what the agent may do, by a SelfSubjectAccessReview. */
  reviewAccess(question: AccessQuestion, options?: CallOptions): Promise<AccessAnswer>;
  /** Asks the server which account a token belongs to, by a TokenReview. */
  reviewToken(token: string, options?: CallOptions): Promise<TokenAnswer>;
  /** Asks the server what another account may do, by a SubjectAccessReview. */
  reviewAccessOf(
    user: TokenUser,
    question: AccessQuestion | PathQuestion,
    options?: CallOptions,
  ): Promise<AccessAnswer>;
  /** Ends every connection; calls in progress fail with `stopped`. */
  close(): void;
}

/** Callbacks of a watcher. They are called one after another, in the server's order; their errors are logged and contained. */
export interface WatchHandler {
  /**
   * The whole list, after the start and whenever the watch had to start again with a list; objects absent from it are deleted.
   * `resourceVersion` is the list's: what was written after it may be absent too.
   */
  onReplace(objects: KubeObject[], resourceVersion: string): void;
  onUpsert(object: KubeObject): void;
  onDelete(object: KubeObject): void;
  /** A watch is open: the first one, or one that follows another that ended or broke. */
  onOpen?(): void;
  /** As `WatchOptions.knownVersion`. */
  knownVersion?(head: string): string | undefined;
}
