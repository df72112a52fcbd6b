import type { ContainerState, ListedContainer, Pod, PodStatus } from "../runtime/index.ts";

export interface ReconciledPod {
  /** The listed pod with the states of the inspection. */
  pod: Pod;
  /** The pod when it was listed, if a container exited between list and inspection, so that both are emitted; else `pod`. */
  listed: Pod;
  /** The inspected status of the listed containers. */
  status: PodStatus;
  /** Whether list and inspection contradict each other, so that the pod must be read again. */
  isInconsistent: boolean;
}

/**
 * Combines a pod's list and the inspection that followed it, so that records, events and cache agree:
 *
 * 1. The result has the containers and sandboxes that are in both; others are left to the next reading.
 * 2. States are those of the inspection, which is newer. A container that is running in the list and exited in the
 *    inspection has started and exited, and both are emitted. A container that is exited in the list and running in the
 *    inspection is inconsistent: containerd's lists and statuses can differ while a container starts.
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

/** IDs that are in the pod's list and not in its inspection. */
export function missingIn({ containers, sandboxes }: Pod, status: PodStatus): Set<string> {
  const missing = new Set([...containers, ...sandboxes].map(({ id }) => id));
  for (const { id } of [...status.containers, ...status.sandboxes]) missing.delete(id);
  return missing;
}

/** Adds the last known IPs to the status of a terminated pod, whose network is removed before its containers. */
export function withKnownIps(status: PodStatus, known: readonly string[]): PodStatus {
  if (status.ips.length > 0 || known.length === 0) return status;
  if (status.sandboxes.some(({ state }) => state === "running")) return status;
  return { ...status, ips: known };
}
