// Data that `kubectl nodekeeper page` sends to its page. Times are wall-clock milliseconds of the operator's machine.
import type { EvictionMode } from "../decide/index.ts";
import type { ApiAnswers } from "../openapi/index.ts";

/** Something that is wrong with a node's agent, by the object it concerns. */
export interface FleetProblem {
  what: "not ready" | "failing" | "refused" | "not written";
  name: string;
  message: string;
}

/** State of a node's agent, as of its last response. */
export interface FleetReading {
  /** When it answered. */
  at: number;
  version: string;
  /** When the agent started. */
  startedAt: number;
  /** Whether its health checks pass. */
  isReady: boolean;
  /** Whether pods are evicted. */
  mode: EvictionMode | "off";
  plugins: number;
  /** Plugins whose registration was refused or whose last call failed. */
  failing: number;
  /** Content of plugins that is refused, and objects that can't be written. */
  refused: number;
  /** Pods evicted in the last hour. */
  evicted: number;
  /** Pods that would have been evicted in the last hour, but for dry run. */
  dryRunEvicted: number;
  /** Taints and conditions that eviction has set. */
  conditions: string[];
  /** The first of its problems. */
  problems: FleetProblem[];
}

/** A node of the cluster. */
export interface FleetNode {
  node: string;
  /** Of its Node object. Absent if it has none, or the user may not list nodes. */
  condition?: "Ready" | "NotReady" | "Unknown";
  isCordoned?: boolean;
  hasAgent: boolean;
  /** Of a node that is gone: the times of its first and last record in the archive. */
  archived?: { oldest: number; newest: number };
  /** The last answer of its agent. */
  reading?: FleetReading;
  /** Why there is no newer answer. */
  problem?: string;
}

/** The nodes that have changed since the previous update of the same epoch. */
export interface FleetUpdate {
  /** Changes if nodes were removed. Then `nodes` has all. */
  epoch: number;
  version: number;
  nodes: FleetNode[];
  /** When the nodes were last listed. Absent before the first time. */
  listedAt?: number;
  /** Why they can't be listed now. */
  problem?: string;
  /** Why nodes that are gone can't be listed now. */
  archiveProblem?: string;
}

/** A pod that the API server has. */
export interface FoundPod {
  namespace: string;
  name: string;
  uid: string;
  /** Empty if it is not scheduled. */
  node: string;
  phase: string;
  /** "ReplicaSet web-7c5d". */
  owner?: string;
  createdAt?: number;
}

/** Pods of the cluster whose name contains a text. */
export interface FoundPods {
  items: FoundPod[];
  /** How many pods were looked at. */
  searched: number;
  /** Whether there may be more of them than `items`. */
  hasMore: boolean;
  /** The only namespace that was searched, if the user may not list the pods of all. */
  namespace?: string;
}

/** The text of `explain pod` or `explain node`. */
export interface Explained {
  text: string;
}

/** Properties by which two nodes are compared. */
export interface NodeDetails {
  node: string;
  /** Versions and capacity of its Node object by their names. Empty without the right to get it. */
  object: Record<string, string>;
  agent: ApiAnswers["version"];
  /** The configuration in force. */
  configuration: ApiAnswers["configuration"];
  plugins: ApiAnswers["plugins"];
}
