import type { AgentConnection } from "./agent-connection.ts";

/** The result of one node of a fleet. */
export interface FleetAnswer<T> {
  readonly node: string;
  readonly hasAgent: boolean;
  /** Undefined if the node has no agent or it did not answer. */
  readonly answer: T | undefined;
  /** Why there is no answer. Undefined if there is one. */
  readonly error: unknown;
}

/** The agents of a cluster's nodes. */
export interface Fleet {
  /**
   * Runs `work` with the agent of each node, with bounded concurrency. Failures are part of the result. Sorted by node.
   */
  ask<T>(work: (agent: AgentConnection, node: string) => Promise<T>): Promise<FleetAnswer<T>[]>;
}
