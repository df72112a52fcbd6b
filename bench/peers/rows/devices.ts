import { controlPlaneParts } from "../../../test/e2e/support/parts.ts";
import type { Row } from "../row.ts";

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

/** Devices published and claims prepared beside upstream's helpers of DRA drivers. */
export const deviceRows = {
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
} as const satisfies Readonly<Record<string, Row>>;
