import type { AgentConnection } from "./agent-connection.ts";

/** What one node of a fleet answered. */
export interface FleetAnswer<T> {
  readonly node: string;
  readonly hasAgent: boolean;
  /** Undefined where the node has no agent, or it does not answer. */
  readonly answer: T | undefined;
  /** Why there is no answer; undefined where there is one. */
  readonly error: unknown;
}

/** The agents of a cluster's nodes. */
export interface Fleet {
  /** Runs `work` with the agent of each node, a bounded number at a time. Sorted by node; a failure is an answer. */
  ask<T>(work: (agent: AgentConnection, node: string) => Promise<T>): Promise<FleetAnswer<T>[]>;
}
