import type { FoundPod } from "@nodekeeper/api/fleet";
import type { ArchiveCommands } from "./archive-commands.ts";
import { type FleetNodeState, TestFleet } from "./fleet.ts";
import type { ArchiveFixture } from "./recorded-archive.ts";

const NODES = 200;
const PLUGINS = ["disk-io", "network"];

/** The cluster of docs/archive-pictures.md: simulated nodes, of which those of the recorded archive are gone. */
export function drawnFleet(archive: ArchiveFixture, commands: ArchiveCommands): TestFleet {
  const gone = goneNodes(archive);
  const names = Array.from({ length: NODES }, (_, at) => `worker-${String(at).padStart(3, "0")}`);
  const nodes = names.map((name, at) => [name, gone[name] ?? stateOf(at)] as const);
  const fleet = new TestFleet(Object.fromEntries(nodes), {
    explainPod: (pod) => commands.run(`explain pod ${pod}`),
    explainNode: (node) => commands.run(`explain node ${node}`),
  });
  fleet.pods.push(...pods(archive.at));
  return fleet;
}

function goneNodes({ rows }: ArchiveFixture): Record<string, FleetNodeState> {
  const ofNodes = Object.entries(Object.groupBy(rows, (row) => row["k8s.node.name"]!));
  return Object.fromEntries(
    ofNodes.map(([node, records]) => {
      const times = records!.map(({ _time }) => Date.parse(_time!));
      return [node, { archived: { oldest: Math.min(...times), newest: Math.max(...times) } }];
    }),
  );
}

/** Most nodes are healthy; some of the first fifty have each of the troubles that a node can have. */
function stateOf(at: number): FleetNodeState {
  const version = at % 10 === 7 ? "0.0.9" : "0.1.0";
  const live = { mode: "live", version, working: PLUGINS, configuration: settings(2) } as const;
  if (at === 3) return { ...live, evicted: 2, conditions: ["MemoryPressure"] };
  if (at === 5)
    return { ...live, working: ["network"], failing: { "disk-io": "ThresholdMet timed out after 3 s" } };
  if (at === 8)
    return { problem: "can't query the agent on node worker-008: pod agent-x7k2p is CrashLoopBackOff" };
  if (at === 9) return { hasAgent: false };
  if (at === 11) return { condition: "NotReady", problem: "the agent on node worker-011 does not respond" };
  if (at === 12)
    return { mode: "dryRun", version: "0.0.9", working: ["network"], configuration: settings(1) };
  if (at === 14) return { ...live, isCordoned: true };
  return at % 37 === 30 ? { ...live, evicted: 1 } : live;
}

function settings(perNode: number): object {
  return { eviction: { limits: { perNode, perOwner: 1 }, dryRunPlugins: perNode === 1 ? ["*"] : [] } };
}

function pods(now: number): FoundPod[] {
  const replicas = ["4bd1e", "77a02", "c9f36"].map((suffix, at) => ({
    ...{ namespace: "default", name: `crawler-${suffix}`, uid: `uid-${suffix}`, phase: "Running" },
    ...{ node: `worker-0${at + 1}3`, owner: "ReplicaSet crawler", createdAt: now - at * 3_600_000 },
  }));
  const others = Array.from({ length: 400 }, (_, at) => ({
    ...{
      namespace: "default",
      name: `web-${at}`,
      uid: `uid-web-${at}`,
      phase: "Running",
      node: "worker-000",
    },
  }));
  return [...replicas, ...others];
}
