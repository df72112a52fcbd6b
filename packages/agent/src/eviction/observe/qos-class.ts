import type { QosClass } from "@nodekeeper/api/decide";
import type { Pod, ResourceRequirements } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { isQuantity, parseQuantity } from "@nodekeeper/core/lib";

const computeResources = ["cpu", "memory"] as const;

/** Positive amounts in nanos by "cpu" and "memory"; no entry if not specified. */
type Amounts = Map<string, bigint>;

/**
 * Returns the QoS class of a pod: the one in its status; otherwise computed from the requests and limits for CPU and
 * memory, at pod level if set (KEP-2837), otherwise of its containers and init containers.
 * https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
 */
export function qosClassOf(pod: Pod): QosClass {
  const stated = pod.status?.qosClass;
  if (stated === "BestEffort" || stated === "Burstable" || stated === "Guaranteed") return stated;
  const { containers = [], initContainers = [], resources } = pod.spec ?? {};
  if (resources !== undefined) return classOf([resources]);
  return classOf([...containers, ...initContainers].map((container) => container.resources));
}

function classOf(all: readonly (ResourceRequirements | undefined)[]): QosClass {
  const requests: Amounts = new Map();
  const limits: Amounts = new Map();
  let allLimited = true;
  for (const resources of all) {
    addAmounts(requests, resources?.requests);
    const limited = addAmounts(limits, resources?.limits);
    allLimited &&= limited === computeResources.length;
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const isEqual =
    requests.size === limits.size && [...requests].every(([name, amount]) => limits.get(name) === amount);
  return allLimited && isEqual ? "Guaranteed" : "Burstable";
}

// Returns the number of compute resources in the list.
function addAmounts(total: Amounts, list: ResourceRequirements["requests"] = {}): number {
  let stated = 0;
  for (const name of computeResources) {
    const text = list[name]?.string;
    const amount = isQuantity(text) ? parseQuantity(text).nano : 0n;
    if (amount <= 0n) continue;
    total.set(name, (total.get(name) ?? 0n) + amount);
    stated++;
  }
  return stated;
}
