/** A comparison with a Go program: what is measured, and what differs between both sides. */
export interface Row {
  title: string;
  unit: string;
  /** The ratio of the agent's figure to the peer's, at most. */
  goal: number;
  /** A directory of bench/peers, a Go module. */
  peer: string;
  /** The upstream module that is compared; the peer's go.mod has its version. */
  module: string;
  /** The package of it that does the work. */
  upstream: string;
  /** What runs on our side. */
  ours: string;
  /** What is not the same on both sides. */
  differences: readonly string[];
}

const relist = {
  unit: "CPU ms",
  peer: "relist",
  module: "k8s.io/kubernetes",
  upstream: "pkg/kubelet/pleg",
  ours: "bench/peers/lifecycle-process.ts",
} as const;

const always = [
  "Nodekeeper runs from its sources, with the options and environment of the agent; the agent on a node runs the bundle.",
  "The peer keeps its events in a channel; Nodekeeper keeps them in its log, which one reader follows.",
];

const kept = {
  "relist-110": {
    ...relist,
    title: "unchanged relist, 110 pods with 3 containers",
    goal: 0.5,
    differences: always,
  },
  "relist-500": {
    ...relist,
    title: "unchanged relist, 500 pods with 3 containers",
    goal: 0.5,
    differences: always,
  },
  "relist-2000": {
    ...relist,
    title: "unchanged relist, 2,000 pods with 3 containers",
    goal: 0.6,
    differences: always,
  },
  "first-list": {
    ...relist,
    title: "first list and 440 statuses, 110 pods with 3 containers",
    goal: 1,
    differences: [
      ...always,
      "Until the second list, after a pause of a second. Nodekeeper compiles its code while it runs; the peer's is compiled.",
      "The peer reads one pod at a time, and lists the containers of a pod again with its sandboxes.",
    ],
  },
  "changed-pods": {
    ...relist,
    title: "100 of 500 pods changed, from the list to the last event, at 20 ms a status",
    unit: "ms",
    goal: 0.05,
    differences: [
      ...always,
      "Third change of the process: Nodekeeper raises its limit of status calls at once only with use. The peer reads one pod at a time.",
      "A wall time: on a busy machine, waiting for a processor counts. The peer mostly waits for the runtime, so it is affected less.",
    ],
  },
} satisfies Readonly<Record<string, Row>>;

export type RowName = keyof typeof kept;

/** All rows by name, in the order of docs/performance.md. */
export const rows: Readonly<Record<RowName, Row>> = kept;

/** Comparisons of which no peer has been written yet, and why. */
export const missingRows: readonly { title: string; reason: string }[] = [
  {
    title: "whole agent: RSS, anonymous memory, start, idle CPU",
    reason: "katalyst-agent and nfd-worker are not built by bench/peers yet",
  },
  {
    title: "reporting: a value to its write",
    reason: "no peer imports katalyst's reporter manager yet",
  },
  {
    title: "eviction round, 1,000 pods and 32 plugins",
    reason:
      "no peer imports katalyst's eviction manager yet; test/e2e/goplugins/katalyst-rounds compares decisions, not times",
  },
  {
    title: "10,000 devices: first publication and one changed device",
    reason:
      "`npm run bench -- device-peers` measures it against upstream's controller, but not as pairs with results of this page",
  },
  {
    title: "one claim prepared, 30 at once",
    reason: "no peer imports k8s.io/dynamic-resource-allocation/kubeletplugin yet",
  },
];
