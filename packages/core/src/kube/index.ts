export type { ClusterAccess, Material } from "./access.ts";
export { createKubeClient, type KubeClientOptions } from "./client.ts";
export { type ClusterAccessOptions, loadClusterAccess } from "./cluster-access.ts";
export { nodes, podResource } from "./core-group.ts";
export { aboutNode, type EventInput } from "./event-objects.ts";
export { EventRecorder, type EventRecorderOptions } from "./events.ts";
export { send as sendRequest } from "./exchange.ts";
export { ApiStatusError } from "./http-errors.ts";
export { LeaseElection, type LeaseElectionOptions, type LeaseTimes, leases } from "./lease.ts";
export { createKubeMetrics, type KubeMetrics } from "./metrics.ts";
export { apiVersionOf, isRecord, recordOf, recordsOf, textOf } from "./objects.ts";
export { parsingWith } from "./parsing-client.ts";
export type {
  AccessAnswer,
  AccessQuestion,
  ApiResource,
  ApplyOptions,
  CallOptions,
  DeleteOptions,
  GroupVersionKind,
  JsonPatchOperation,
  KubeApiClient,
  KubeClient,
  KubeObject,
  ListOptions,
  ManagedFieldsEntry,
  ObjectMeta,
  ObjectReference,
  OwnerReference,
  PathQuestion,
  ServerVersion,
  TokenAnswer,
  TokenUser,
  WatchEvent,
  WatchHandler,
  WatchOptions,
} from "./types.ts";
export { Watcher, type WatchTarget } from "./watcher.ts";
