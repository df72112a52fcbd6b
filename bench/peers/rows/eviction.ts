import { katalystProgram, type Row } from "../row.ts";

const eviction = {
  workload: "eviction",
  peer: katalystProgram("eviction", "pkg/agent/evictionmanager"),
  ours: "`bench/peers/eviction-process.ts`",
  differences: [
    "Nodekeeper runs from its sources, with the options and environment of the agent; the agent on a node runs the bundle.",
    "Both call the same plugins, which receive the pods and do not decode them. The peer calls one plugin after the other, and encodes all pods for each call; Nodekeeper calls all at once with bytes that are encoded once for a pod.",
    "The peer sends the pods with two calls to each plugin, 5.3 MB each; Nodekeeper with three, as later versions of the protocol have it, 2.1 MB each, without the pods' managed fields.",
    "Neither watches pods or evicts one here: the plugins are under pressure and name no pod, so that the way to them is measured.",
    "A round of the peer is called by its link name, and not by its timer. It logs nothing and has no metrics; Nodekeeper counts its own.",
  ],
} as const;

/** A round of eviction beside katalyst's eviction manager. */
export const evictionRows = {
  "eviction-round": {
    ...eviction,
    title: "eviction round, 1,000 pods and 32 plugins",
    unit: "ms",
    goal: 0.1,
  },
  "eviction-round-cpu": {
    ...eviction,
    title: "eviction round, CPU with 1,000 pods and 32 plugins",
    unit: "CPU ms",
    goal: 0.06,
  },
} as const satisfies Readonly<Record<string, Row>>;
