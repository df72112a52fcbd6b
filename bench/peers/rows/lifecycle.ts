import type { Row } from "../row.ts";

const relist = {
  unit: "CPU ms",
  peer: { directory: "relist", module: "k8s.io/kubernetes", upstream: "pkg/kubelet/pleg" },
  ours: "`bench/peers/lifecycle-process.ts`",
} as const;

const differences = [
  "Nodekeeper runs from its sources, with the options and environment of the agent; the agent on a node runs the bundle.",
  "The peer keeps its events in a channel; Nodekeeper keeps them in its log, which one reader follows.",
];

/** Lists of a simulated container runtime beside the kubelet's. */
export const lifecycleRows = {
  "relist-110": {
    ...relist,
    workload: "relist-110",
    title: "unchanged relist, 110 pods with 3 containers",
    goal: 0.5,
    differences,
  },
  "relist-500": {
    ...relist,
    workload: "relist-500",
    title: "unchanged relist, 500 pods with 3 containers",
    goal: 0.5,
    differences,
  },
  "relist-2000": {
    ...relist,
    workload: "relist-2000",
    title: "unchanged relist, 2,000 pods with 3 containers",
    goal: 0.6,
    differences,
  },
  "first-list": {
    ...relist,
    workload: "first-list",
    title: "first list and 440 statuses, 110 pods with 3 containers",
    goal: 1,
    differences: [
      ...differences,
      "Until the second list, after a pause of a second. Nodekeeper compiles its code while it runs; the peer's is compiled.",
      "The peer reads one pod at a time, and lists the containers of a pod again with its sandboxes.",
    ],
  },
  "changed-pods": {
    ...relist,
    workload: "changed-pods",
    title: "100 of 500 pods changed, from the list to the last event, at 20 ms a status",
    unit: "ms",
    goal: 0.04,
    differences: [
      ...differences,
      "Third change of the process: Nodekeeper raises its limit of status calls at once only with use. The peer reads one pod at a time.",
      "A wall time: on a busy machine, waiting for a processor counts. The peer mostly waits for the runtime, so it is affected less.",
    ],
  },
} as const satisfies Readonly<Record<string, Row>>;
