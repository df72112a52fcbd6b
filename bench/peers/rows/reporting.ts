import { katalystAgentPeer, type Row } from "../row.ts";

const both = { peer: katalystAgentPeer, ours: "the agent" } as const;

const differences = [
  "Both run their reporter alone, without in-tree plugins. The plugins are the same, and so is the embedded API server; they are written in Go, since katalyst's gRPC client sends the path of a socket as the authority of a call, which Node's HTTP/2 server refuses.",
  "The peer writes each change at once. Nodekeeper writes a change after a quiet second at once, and paces the next ones.",
  "Both have a limit of 100 requests a second. By its default, the peer falls behind 25 values a second: 10 s after half a minute.",
];

const reporting = { ...both, workload: "reporting", differences } as const;

/** From a value of a reporter plugin until the API server has it, beside katalyst-agent. */
export const reportingRows = {
  "reporting-quiet": {
    ...reporting,
    title: "a value after a quiet time, p50 until its write",
    unit: "ms",
    limit: 10,
  },
  "reporting-hung": {
    ...both,
    workload: "reporting-hung",
    title: "a value of 49 plugins beside a hung one, p50 until its write",
    unit: "ms",
    goal: 0.01,
    differences: [
      ...differences,
      "The hung plugin is registered and answers no call. The peer waits for it without a deadline, with its lock held. If it writes no value in the time of the measurement, its figure is that time: it is at least as long.",
    ],
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
  "reporting-busy-writes": {
    ...reporting,
    title: "25 values a second of 50 plugins, writes of the object",
    unit: "a second",
    limit: 5,
  },
  "reporting-busy-cpu": {
    ...reporting,
    title: "25 values a second of 50 plugins, CPU",
    unit: "% of one CPU",
  },
} as const satisfies Readonly<Record<string, Row>>;
