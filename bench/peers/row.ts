import type { PartName } from "../../test/e2e/support/parts.ts";

/** A program that is compared: one in Go, or an empty process of Node. */
export type Peer = GoPeer | "empty process";

/** A Go program that is compared. */
export interface GoPeer {
  /** A directory of bench/peers, a Go module. */
  directory: string;
  /** The package in it; default ".". The import path of a command that is built as upstream has it. */
  program?: string;
  /** The upstream module that is compared; go.mod has its version. */
  module: string;
  /** The package of it that does the work. */
  upstream: string;
}

/** A comparison with another program: what is measured, and what differs between both sides. */
export interface Row {
  title: string;
  unit: string;
  /** What is run for it; a run gives the figures of all rows of its workload. */
  workload: string;
  /** The ratio of the agent's figure to the peer's, at most. */
  goal?: number;
  /** The agent's figure, at most. */
  limit?: number;
  peer: Peer;
  /** Real parts of the end-to-end suite that both sides run against. */
  parts?: readonly PartName[];
  /** What runs on our side, Markdown. */
  ours: string;
  /** What is not the same on both sides. */
  differences: readonly string[];
}

const KATALYST = "github.com/kubewharf/katalyst-core";

/** A program that imports katalyst, in the directory of its name. */
export function katalystProgram(name: string, upstream: string): GoPeer {
  return { directory: "katalyst", program: `./${name}`, module: KATALYST, upstream };
}

/** The agent of katalyst as upstream builds it. */
export const katalystAgentPeer = {
  directory: "katalyst",
  program: `${KATALYST}/cmd/katalyst-agent`,
  module: KATALYST,
  upstream: "cmd/katalyst-agent",
} as const satisfies GoPeer;
