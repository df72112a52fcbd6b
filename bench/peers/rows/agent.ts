import { katalystAgentPeer, type Row } from "../row.ts";

const polled =
  "Until it is ready, Nodekeeper is asked for `/readyz` every 10 ms, which costs it half a millisecond each time; the peer is not asked.";

const wholeAgent = [
  "Nodekeeper has its default settings: it reports, evicts, publishes devices, and follows the pods of a simulated container runtime. It is started with the variables and the option of Node that the image and the systemd unit set. Start is until `/readyz` returns 200; of the peer, until its first object arrives at the API server.",
  "The embedded API server runs in the benchmark's process, on the same processors. It returns the 110 pods, of 8 KB each, to Nodekeeper alone; the runtime has two containers for each pod.",
  polled,
];

const idle =
  "Both are started one after the other and then run in the same minute. No less idle CPU than the kernel's step of 10 ms can be seen: 0.033 % in 30 s.";

const katalyst = {
  workload: "agent-katalyst",
  peer: katalystAgentPeer,
  ours: "the agent",
  differences: [
    ...wholeAgent,
    idle,
    "The peer has its reporter and eviction managers on, and the in-tree system reporter. Its other agents (QoS advisor, resource plugins, ORM) are off, and so are the kubelet reporter and the metrics of malachite: they need a kubelet's and malachite's sockets, which a simulated machine does not have.",
    "The peer reads the pods from a server in place of the kubelet's read-only port; Nodekeeper watches them at the API server.",
  ],
} as const;

const nfd = {
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
    idle,
    "The peer only reads the machine's features, once a minute, and writes them to one object: it knows no pods, plugins, runtime or eviction.",
  ],
} as const;

const reporting = {
  workload: "agent-reporting",
  peer: katalystAgentPeer,
  ours: "the agent",
  differences: [
    "Both run their reporter alone, with the in-tree system reporter: Nodekeeper without lifecycle and eviction, the peer without its other agents. It is started with the variables and the option of Node that the image and the systemd unit set. Start is until `/readyz` returns 200; of the peer, until its first object arrives at the API server.",
    "The embedded API server runs in the benchmark's process, on the same processors.",
    polled,
    idle,
  ],
} as const;

const off = {
  workload: "agent-off",
  peer: "empty process",
  ours: "the agent",
  differences: [
    "The peer is the floor: a process of the same Node without a program. Nodekeeper has lifecycle, eviction and its in-tree reporter off, no plugin and no driver: it connects to the API server, watches directories and serves its status.",
    "It is started with the variables and the option of Node that the image and the systemd unit set. Start is until `/readyz` returns 200; of the peer, until it prints a line.",
    polled,
  ],
} as const;

/** The agent as a process: start, memory and CPU at rest, beside agents in Go and an empty process of Node. */
export const agentRows = {
  "agent-katalyst-rss": {
    ...katalyst,
    title: "whole agent beside katalyst-agent, RSS after 60 s",
    unit: "MB",
    limit: 78,
  },
  "agent-katalyst-anonymous": {
    ...katalyst,
    title: "whole agent beside katalyst-agent, anonymous memory after 60 s",
    unit: "MB",
    limit: 22,
  },
  "agent-katalyst-start": {
    ...katalyst,
    title: "whole agent beside katalyst-agent, start to ready",
    unit: "ms",
    limit: 250,
  },
  "agent-katalyst-idle": {
    ...katalyst,
    title: "whole agent beside katalyst-agent, idle CPU",
    unit: "% of one CPU",
    limit: 0.2,
  },
  "agent-nfd-rss": {
    ...nfd,
    title: "whole agent beside nfd-worker, RSS after 60 s",
    unit: "MB",
    limit: 78,
  },
  "agent-nfd-anonymous": {
    ...nfd,
    title: "whole agent beside nfd-worker, anonymous memory after 60 s",
    unit: "MB",
    limit: 22,
  },
  "agent-nfd-start": {
    ...nfd,
    title: "whole agent beside nfd-worker, start to ready",
    unit: "ms",
    limit: 250,
  },
  "agent-nfd-idle": {
    ...nfd,
    title: "whole agent beside nfd-worker, idle CPU",
    unit: "% of one CPU",
    limit: 0.2,
  },
  "agent-reporting-start": {
    ...reporting,
    title: "reporting alone beside katalyst-agent, start to ready",
    unit: "ms",
    limit: 110,
  },
  "agent-reporting-rss": {
    ...reporting,
    title: "reporting alone beside katalyst-agent, RSS after 40 s",
    unit: "MB",
  },
  "agent-reporting-anonymous": {
    ...reporting,
    title: "reporting alone beside katalyst-agent, anonymous memory after 40 s",
    unit: "MB",
  },
  "agent-reporting-idle": {
    ...reporting,
    title: "reporting alone beside katalyst-agent, idle CPU",
    unit: "% of one CPU",
  },
  "agent-off-start": {
    ...off,
    title: "every part off beside an empty process of Node, start to ready",
    unit: "ms",
  },
  "agent-off-rss": { ...off, title: "every part off beside an empty process of Node, RSS", unit: "MB" },
  "agent-off-anonymous": {
    ...off,
    title: "every part off beside an empty process of Node, anonymous memory",
    unit: "MB",
  },
} as const satisfies Readonly<Record<string, Row>>;
