import type { ContainerState, ListedContainer, Pod, PodStatus } from "../runtime/index.ts";

export interface ReconciledPod {
  /** The listed pod, with the states from the inspection. */
  pod: Pod;
  /**
   * The pod as listed if a container exited between list and inspection, so that both its start and its exit
   * are emitted; otherwise the same as `pod`.
   */
  listed: Pod;
  /** The inspected status of the listed containers. */
  status: PodStatus;
  /** Whether list and inspection contradict each other. The pod must then be read again. */
  isInconsistent: boolean;
}

/**
 * Merges the list of a pod with the inspection that followed it, so that records, events and cache are
 * consistent:
 *
 * 1. The result contains the containers and sandboxes that are in both. Others are left to the next reading.
 * 2. States come from the inspection, which is newer. If a container is running in the list and exited in the
 *    inspection, both its start and its exit are emitted. A container that is exited in the list and running
 *    in the inspection is inconsistent: containerd's lists and statuses can differ while a container starts.
 */
export function reconcile(listed: Pod, status: PodStatus): ReconciledPod {
  const states = new Map<string, ContainerState>();
  for (const { id, state } of [...status.containers, ...status.sandboxes]) states.set(id, state);
  const all = [...listed.containers, ...listed.sandboxes];
  const isInconsistent = all.some(({ id, state }) => {
    const inspected = states.get(id);
    return inspected === undefined || (state === "exited" && inspected === "running");
  });
  const isSame = all.every(({ id, state }) => states.get(id) === state);
  if (isSame && states.size === all.length) return { pod: listed, listed, status, isInconsistent };
  const ids = new Set(all.map(({ id }) => id));
  const inState = (stateOf: (listed: ContainerState, inspected: ContainerState) => ContainerState): Pod => {
    const change = (container: ListedContainer): ListedContainer[] => {
      const inspected = states.get(container.id);
      if (inspected === undefined) return [];
      const state = stateOf(container.state, inspected);
      return [state === container.state ? container : { ...container, state }];
    };
    return {
      ...listed,
      containers: listed.containers.flatMap(change),
      sandboxes: listed.sandboxes.flatMap(change),
    };
  };
  const isExit = (before: ContainerState, after: ContainerState) =>
    before === "running" && after === "exited";
  const hasExit = all.some(({ id, state }) => isExit(state, states.get(id) ?? state));
  const pod = inState((_, inspected) => inspected);
  return {
    pod,
    listed: hasExit ? inState((before, after) => (isExit(before, after) ? before : after)) : pod,
    status: {
      ...status,
      containers: status.containers.filter(({ id }) => ids.has(id)),
      sandboxes: status.sandboxes.filter(({ id }) => ids.has(id)),
    },
    isInconsistent,
  };
}

/** Returns the IDs that are in the pod's list but not in its inspection. */
export function missingIn({ containers, sandboxes }: Pod, status: PodStatus): Set<string> {
  const missing = new Set([...containers, ...sandboxes].map(({ id }) => id));
  for (const { id } of [...status.containers, ...status.sandboxes]) missing.delete(id);
  return missing;
}

/**
 * Adds the last known IPs to the status of a terminated pod, because its network is removed before its
 * containers.
 */
export function withKnownIps(status: PodStatus, known: readonly string[]): PodStatus {
  if (status.ips.length > 0 || known.length === 0) return status;
  if (status.sandboxes.some(({ state }) => state === "running")) return status;
  return { ...status, ips: known };
}
