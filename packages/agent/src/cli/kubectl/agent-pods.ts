import { AgentNotFound } from "@nodekeeper/api/errors";
import { codeOf } from "@nodekeeper/core/lib";
import type { Kubectl } from "./kubectl.ts";

const DEFAULT_PORT = 10_290;

/** The agent of a node, as seen from its pod. */
export interface AgentPod {
  readonly node: string;
  readonly namespace: string;
  readonly pod: string;
  /** Port of its status server on the node's loopback. */
  readonly port: number;
  /** Why it is unreachable. Undefined if it runs. */
  readonly problem: string | undefined;
}

interface PodList {
  items: {
    metadata: { namespace: string; name: string; creationTimestamp: string; deletionTimestamp?: string };
    spec: { nodeName?: string; containers: { env?: { name: string; value?: string }[] }[] };
    status?: { phase?: string; reason?: string; containerStatuses?: ContainerStatus[] };
  }[];
}

interface ContainerStatus {
  name: string;
  state?: { running?: object; waiting?: { reason?: string }; terminated?: { reason?: string } };
}

type Pod = PodList["items"][number];

const ANY_NAMESPACE = "any namespace";
/** The agents' namespace in the manifests and the documentation. */
const DEFAULT_NAMESPACE = "nodekeeper";
/** Name of the agent's container. The chart may add other containers to the pod. */
const CONTAINER = "nodekeeper";

/**
 * Returns one agent per node, found by the labels of their pods, sorted by node. Throws `notFound` if there are none,
 * and as `Kubectl.run`.
 * @param namespace of their pods. If undefined, all namespaces, or "nodekeeper" without the right to list pods in all.
 */
export async function findAgents(
  kubectl: Kubectl,
  namespace: string | undefined,
  selector: string,
): Promise<AgentPod[]> {
  const podsOf = async (...scope: string[]) => {
    const args = ["get", "pods", ...scope, "--selector", selector, "--output", "json"];
    return (JSON.parse(await kubectl.run(args)) as PodList).items;
  };
  let place = `the namespace ${namespace ?? DEFAULT_NAMESPACE}`;
  const podsOfAll = async () => {
    try {
      const items = await podsOf("--all-namespaces");
      place = ANY_NAMESPACE;
      return items;
    } catch (error) {
      if (codeOf(error) !== "forbidden") throw error;
      return await podsOf("--namespace", DEFAULT_NAMESPACE);
    }
  };
  const items = namespace === undefined ? await podsOfAll() : await podsOf("--namespace", namespace);
  const byNode = Map.groupBy(
    items.filter(({ spec }) => spec.nodeName),
    ({ spec }) => spec.nodeName!,
  );
  if (byNode.size === 0) {
    const next =
      place === ANY_NAMESPACE
        ? "if the chart sets nameOverride, pass --agent-selector"
        : "specify the agents' namespace with --agent-namespace";
    throw new AgentNotFound({ problem: `no pods match ${selector} in ${place}; ${next}` });
  }
  return [...byNode].map(([node, pods]) => agentOf(node, pods)).sort((a, b) => (a.node < b.node ? -1 : 1));
}

// Returns the agent of a node. During a rolling update, a node may have two agent pods: running pods take precedence,
// then pods that are not being deleted, then newer pods. Pods in the default namespace take precedence over pods in
// other namespaces, whose users may have set the agents' labels. Other namespaces are not ordered.
function agentOf(node: string, pods: readonly Pod[]): AgentPod {
  const [newest] = [...pods].sort(
    (a, b) =>
      Number(a.metadata.namespace !== DEFAULT_NAMESPACE) -
        Number(b.metadata.namespace !== DEFAULT_NAMESPACE) ||
      Number(!isRunning(a)) - Number(!isRunning(b)) ||
      Number(a.metadata.deletionTimestamp !== undefined) -
        Number(b.metadata.deletionTimestamp !== undefined) ||
      (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1),
  );
  const { metadata } = newest!;
  return {
    node,
    namespace: metadata.namespace,
    pod: metadata.name,
    port: portOf(newest!),
    problem: ambiguityOf(pods) ?? problemOf(newest!),
  };
}

/** Returns why it is unknown which pod is the agent's; undefined if it is known. */
function ambiguityOf(pods: readonly Pod[]): string | undefined {
  const present = pods.filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
  const namespaces = [...new Set(present.map(({ metadata }) => metadata.namespace))].sort();
  if (namespaces.length < 2 || namespaces.includes(DEFAULT_NAMESPACE)) return undefined;
  return `pods with the agents' labels are in the namespaces ${namespaces.join(", ")}; specify one with --agent-namespace`;
}

function isRunning(pod: Pod): boolean {
  return pod.status?.phase === "Running" && statesOf(pod).some((state) => state?.running);
}

function statesOf({ status }: Pod): ContainerStatus["state"][] {
  const all = status?.containerStatuses ?? [];
  const own = all.filter(({ name }) => name === CONTAINER);
  return (own.length > 0 ? own : all).map(({ state }) => state);
}

function problemOf(pod: Pod): string | undefined {
  if (isRunning(pod)) return undefined;
  const { status, metadata } = pod;
  const state = statesOf(pod).map((each) => each?.waiting ?? each?.terminated)[0];
  return `pod ${metadata.name} is ${state?.reason ?? status?.reason ?? status?.phase ?? "Pending"}`;
}

// The chart sets this variable for commands that run in the container.
function portOf({ spec }: Pod): number {
  const values = spec.containers.flatMap(({ env = [] }) =>
    env.flatMap(({ name, value }) => (name === "NODEKEEPER_SERVER_ADDRESS" ? (value ?? []) : [])),
  );
  return Number(/:(\d{1,5})$/.exec(values[0] ?? "")?.[1] ?? DEFAULT_PORT);
}
