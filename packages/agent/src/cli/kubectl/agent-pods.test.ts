import { expect, it } from "vitest";
import { findAgents } from "./agent-pods.ts";
import type { Kubectl } from "./kubectl.ts";

const running = { running: {} };
const crashed = { waiting: { reason: "CrashLoopBackOff" } };

function pod(namespace: string, { phase = "Running", states = { nodekeeper: running as object } } = {}) {
  const containerStatuses = Object.entries(states).map(([name, state]) => ({ name, state }));
  return {
    metadata: { namespace, name: `agent-${namespace}`, creationTimestamp: "2026-11-22T08:00:00Z" },
    spec: { nodeName: "n1", containers: [{}] },
    status: { phase, containerStatuses },
  };
}

/** The agent of the node that has these pods. */
async function agentOf(...items: object[]) {
  const kubectl: Partial<Kubectl> = { run: async () => JSON.stringify({ items }) };
  const [agent] = await findAgents(kubectl as Kubectl, undefined, "app=x");
  return agent!;
}

const twoNamespaces =
  "pods with the agents' labels are in the namespaces infra, tenant; specify one with --agent-namespace";

it.each([
  ["run", pod("tenant"), twoNamespaces],
  ["starts", pod("tenant", { phase: "Pending", states: {} as { nodekeeper: object } }), twoNamespaces],
  ["has ended", pod("tenant", { phase: "Failed" }), undefined],
])("no pod is taken for the agent if one of another namespace %s", async (_, tenant, problem) => {
  const agent = await agentOf(tenant, pod("infra"));
  expect(agent.problem).toBe(problem);
  if (problem === undefined) expect(agent.namespace).toBe("infra");
});

it.each([
  ["that runs", running, undefined],
  ["that does not", crashed, "pod agent-nodekeeper is CrashLoopBackOff"],
])("a pod of the namespace nodekeeper %s is the agent", async (_, state, problem) => {
  const agent = await agentOf(
    pod("tenant"),
    pod("nodekeeper", { states: { nodekeeper: state } }),
    pod("infra"),
  );
  expect(agent).toMatchObject({ namespace: "nodekeeper", problem });
});

it("another container does not hide that the agent does not run, nor that it does", async () => {
  const sidecarFirst = (sidecar: object, nodekeeper: object) =>
    agentOf(pod("nodekeeper", { states: { sidecar, nodekeeper } as { nodekeeper: object } }));
  expect((await sidecarFirst(running, crashed)).problem).toBe("pod agent-nodekeeper is CrashLoopBackOff");
  expect((await sidecarFirst(crashed, running)).problem).toBeUndefined();
  const renamed = pod("nodekeeper", { states: { other: running } as unknown as { nodekeeper: object } });
  expect((await agentOf(renamed)).problem).toBeUndefined();
});
