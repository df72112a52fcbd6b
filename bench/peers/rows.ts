import { controlPlaneParts, type PartName } from "../../test/e2e/support/parts.ts";

/** A Go program that is compared. */
export interface Peer {
  /** A directory of bench/peers, a Go module. */
  directory: string;
  /** The package in it; default ".". The import path of a command that is built as upstream has it. */
  program?: string;
  /** The upstream module that is compared; go.mod has its version. */
  module: string;
  /** The package of it that does the work. */
  upstream: string;
}

/** A comparison with a Go program: what is measured, and what differs between both sides. */
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

const relist = {
  unit: "CPU ms",
  peer: { directory: "relist", module: "k8s.io/kubernetes", upstream: "pkg/kubelet/pleg" },
  ours: "`bench/peers/lifecycle-process.ts`",
} as const;

const relistDifferences = [
  "Nodekeeper runs from its sources, with the options and environment of the agent; the agent on a node runs the bundle.",
  "The peer keeps its events in a channel; Nodekeeper keeps them in its log, which one reader follows.",
];

const devices = {
  workload: "devices",
  peer: {
    directory: "dra",
    program: "./resourceslices",
    module: "k8s.io/dynamic-resource-allocation",
    upstream: "resourceslice",
  },
  parts: controlPlaneParts,
  ours: "the agent",
  differences: [
    "Nodekeeper receives the devices from a driver, as a message of 1.6 MB over a Unix socket, which is part of its figures; the peer makes them in its own process, as a driver that publishes by itself does.",
    "Nodekeeper is one process for all drivers and has published those of another one before; the peer is a new process, as a driver's is.",
    "The agent has all its modules on; the peer does nothing else.",
  ],
} as const;

const claims = {
  workload: "claims",
  peer: {
    directory: "dra",
    program: "./claims",
    module: "k8s.io/dynamic-resource-allocation",
    upstream: "kubeletplugin",
  },
  ours: "the agent",
  differences: [
    "Nodekeeper asks a driver in another process over a Unix socket what the containers need; the peer is the driver.",
    "Nodekeeper's record is a transaction of SQLite, which survives a crash of the process; the peer writes a JSON file of all prepared claims. Neither waits for the disk.",
    "Both have the API client's default limit, 20 requests a second and a burst of 40; rounds of 30 claims are 2.5 s apart. The claims are read from the same embedded API server.",
  ],
} as const;

const katalyst = "github.com/kubewharf/katalyst-core";

const eviction = {
  workload: "eviction",
  peer: {
    directory: "katalyst",
    program: "./eviction",
    module: katalyst,
    upstream: "pkg/agent/evictionmanager",
  },
  ours: "`bench/peers/eviction-process.ts`",
  differences: [
    "Nodekeeper runs from its sources, with the options and environment of the agent; the agent on a node runs the bundle.",
    "The peer calls one plugin after the other, and encodes all pods for each call; Nodekeeper calls all at once with bytes that are encoded once for a pod.",
    "Neither watches pods or evicts one here: the plugins are under pressure and name no pod, so that the way to them is measured.",
    "A round of the peer is called by its link name, and not by its timer. It logs nothing and has no metrics; Nodekeeper counts its own.",
  ],
} as const;

const reporting = {
  workload: "reporting",
  peer: {
    directory: "katalyst",
    program: "github.com/kubewharf/katalyst-core/cmd/katalyst-agent",
    module: katalyst,
    upstream: "cmd/katalyst-agent",
  },
  ours: "the agent",
  differences: [
    "Both run their reporter alone, without in-tree plugins. The plugins are the same, and so is the embedded API server; they are written in Go, since katalyst's gRPC client sends the path of a socket as the authority of a call, which Node's HTTP/2 server refuses.",
    "The peer writes each change at once. Nodekeeper writes a change after a quiet second at once, and paces the next ones.",
    "Both have a limit of 100 requests a second. By its default, the peer falls behind 25 values a second: 10 s after half a minute.",
    "A hung plugin is not among them: beside one that never answers, the peer wrote nothing for 40 s, so that there is no figure.",
  ],
} as const;

const wholeAgent = [
  "Nodekeeper has its default settings: it reports, evicts, publishes devices, and follows the pods of a simulated container runtime. It is started with the variables and the option of Node that the image and the systemd unit set. Start is until `/readyz` returns 200; of the peer, until its first object arrives at the API server.",
  "The embedded API server runs in the benchmark's process, on the same processors. It returns the 110 pods, of 8 KB each, to Nodekeeper alone.",
  "Idle CPU is that of 30 s; no less than the kernel's step of 10 ms, 0.033 %, can be seen.",
];

const agentKatalyst = {
  workload: "agent-katalyst",
  peer: {
    directory: "katalyst",
    program: "github.com/kubewharf/katalyst-core/cmd/katalyst-agent",
    module: katalyst,
    upstream: "cmd/katalyst-agent",
  },
  ours: "the agent",
  differences: [
    ...wholeAgent,
    "The peer has its reporter and eviction managers on, and the in-tree system reporter. Its other agents (QoS advisor, resource plugins, ORM) are off, and so are the kubelet reporter and the metrics of malachite: they need a kubelet's and malachite's sockets, which a simulated machine does not have.",
    "The peer reads the pods from a server in place of the kubelet's read-only port; Nodekeeper watches them at the API server.",
  ],
} as const;

const agentNfd = {
  workload: "agent-nfd",
  peer: {
    directory: "nfd",
    program: "sigs.k8s.io/node-feature-discovery/cmd/nfd-worker",
    module: "sigs.k8s.io/node-feature-discovery",
    upstream: "cmd/nfd-worker",
  },
  ours: "the agent",
  differences: [
    ...wholeAgent,
    "The peer only reads the machine's features, once a minute, and writes them to one object: it knows no pods, plugins, runtime or eviction.",
  ],
} as const;

const kept = {
  "relist-110": {
    ...relist,
    workload: "relist-110",
    title: "unchanged relist, 110 pods with 3 containers",
    goal: 0.5,
    differences: relistDifferences,
  },
  "relist-500": {
    ...relist,
    workload: "relist-500",
    title: "unchanged relist, 500 pods with 3 containers",
    goal: 0.5,
    differences: relistDifferences,
  },
  "relist-2000": {
    ...relist,
    workload: "relist-2000",
    title: "unchanged relist, 2,000 pods with 3 containers",
    goal: 0.6,
    differences: relistDifferences,
  },
  "first-list": {
    ...relist,
    workload: "first-list",
    title: "first list and 440 statuses, 110 pods with 3 containers",
    goal: 1,
    differences: [
      ...relistDifferences,
      "Until the second list, after a pause of a second. Nodekeeper compiles its code while it runs; the peer's is compiled.",
      "The peer reads one pod at a time, and lists the containers of a pod again with its sandboxes.",
    ],
  },
  "changed-pods": {
    ...relist,
    workload: "changed-pods",
    title: "100 of 500 pods changed, from the list to the last event, at 20 ms a status",
    unit: "ms",
    goal: 0.05,
    differences: [
      ...relistDifferences,
      "Third change of the process: Nodekeeper raises its limit of status calls at once only with use. The peer reads one pod at a time.",
      "A wall time: on a busy machine, waiting for a processor counts. The peer mostly waits for the runtime, so it is affected less.",
    ],
  },
  "devices-first-write": {
    ...devices,
    title: "10,000 devices, until the first write",
    unit: "ms",
    goal: 1,
  },
  "devices-published": {
    ...devices,
    title: "10,000 devices, until all are published",
    unit: "ms",
    goal: 0.88,
  },
  "devices-cpu": { ...devices, title: "10,000 devices, CPU of the publication", unit: "CPU ms", goal: 0.96 },
  "changed-device": {
    ...devices,
    title: "one changed device of 10,000, p50 until its write",
    unit: "ms",
    goal: 0.17,
  },
  "changed-device-cpu": {
    ...devices,
    title: "one changed device of 10,000, CPU",
    unit: "CPU ms",
    goal: 0.05,
  },
  "one-claim": { ...claims, title: "one claim prepared, p50", unit: "ms", goal: 1.2 },
  "30-claims": { ...claims, title: "30 claims prepared at once, p50", unit: "ms", goal: 1.2 },
  "30-claims-cpu": { ...claims, title: "30 claims at once, CPU of a claim", unit: "CPU ms", goal: 1.5 },
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
  "reporting-quiet": {
    ...reporting,
    title: "a value after a quiet time, p50 until its write",
    unit: "ms",
    limit: 10,
  },
  "reporting-busy": {
    ...reporting,
    title: "25 values a second of 50 plugins, p50 until the write",
    unit: "ms",
  },
  "reporting-busy-p99": {
    ...reporting,
    title: "25 values a second of 50 plugins, p99 until the write",
    unit: "ms",
  },
  "reporting-busy-cpu": {
    ...reporting,
    title: "25 values a second of 50 plugins, CPU",
    unit: "% of one CPU",
  },
  "agent-katalyst-rss": {
    ...agentKatalyst,
    title: "whole agent beside katalyst-agent, RSS after 60 s",
    unit: "MB",
    limit: 78,
  },
  "agent-katalyst-anonymous": {
    ...agentKatalyst,
    title: "whole agent beside katalyst-agent, anonymous memory after 60 s",
    unit: "MB",
    limit: 22,
  },
  "agent-katalyst-start": {
    ...agentKatalyst,
    title: "whole agent beside katalyst-agent, start to ready",
    unit: "ms",
    limit: 250,
  },
  "agent-katalyst-idle": {
    ...agentKatalyst,
    title: "whole agent beside katalyst-agent, idle CPU",
    unit: "% of one CPU",
    limit: 0.2,
  },
  "agent-nfd-rss": {
    ...agentNfd,
    title: "whole agent beside nfd-worker, RSS after 60 s",
    unit: "MB",
    limit: 78,
  },
  "agent-nfd-anonymous": {
    ...agentNfd,
    title: "whole agent beside nfd-worker, anonymous memory after 60 s",
    unit: "MB",
    limit: 22,
  },
  "agent-nfd-start": {
    ...agentNfd,
    title: "whole agent beside nfd-worker, start to ready",
    unit: "ms",
    limit: 250,
  },
  "agent-nfd-idle": {
    ...agentNfd,
    title: "whole agent beside nfd-worker, idle CPU",
    unit: "% of one CPU",
    limit: 0.2,
  },
} as const satisfies Readonly<Record<string, Row>>;

export type RowName = keyof typeof kept;
export type Workload = (typeof kept)[RowName]["workload"];

/** All rows by name, in the order of docs/performance.md. */
export const rows: Readonly<Record<RowName, Row & { workload: Workload }>> = kept;
