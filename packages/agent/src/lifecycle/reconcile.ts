import type { ContainerState, ListedContainer, Pod, PodStatus } from "../runtime/index.ts";

export interface ReconciledPod {
  /** What the list has, in the states of the inspection. */
  pod: Pod;
  /** The same when it was listed, where something that ran then has exited since: both are news. Else `pod`. */
  listed: Pod;
  /** What the inspection has of it. */
  status: PodStatus;
  /** Whether the two should not have differed so, and the pod has to be read again. */
  isDoubted: boolean;
}

/**
 * One truth from a pod's list and the inspection that followed it, so that records, events and cache agree:
 *
 * 1. The same containers and sandboxes are in both: what only one of them has is left to the next reading.
 * 2. States are those of the inspection, the later reading. Running in the list and exited in the inspection is an
 *    exit in between: it has started, too, which a container that runs for a second may never show again. Exited in the
 *    list and running in the inspection is doubted: containerd's lists and statuses can differ while a container starts.
 */
export function reconcile(listed: Pod, status: PodStatus): ReconciledPod {
  const states = new Map<string, ContainerState>();
  for (const { id, state } of [...status.containers, ...status.sandboxes]) states.set(id, state);
  const all = [...listed.containers, ...listed.sandboxes];
  const isDoubted = all.some(({ id, state }) => {
    const inspected = states.get(id);
    return inspected === undefined || (state === "exited" && inspected === "running");
  });
  const isSame = all.every(({ id, state }) => states.get(id) === state);
  if (isSame && states.size === all.length) return { pod: listed, listed, status, isDoubted };
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
    isDoubted,
  };
}

/** IDs that a pod has in the list and not in its inspection. */
export function missingIn({ containers, sandboxes }: Pod, status: PodStatus): Set<string> {
  const missing = new Set([...containers, ...sandboxes].map(({ id }) => id));
  for (const { id } of [...status.containers, ...status.sandboxes]) missing.delete(id);
  return missing;
}

/** The status with the last known addresses where a finished pod has lost its own: its network was removed first. */
export function withKnownIps(status: PodStatus, known: readonly string[]): PodStatus {
  if (status.ips.length > 0 || known.length === 0) return status;
  if (status.sandboxes.some(({ state }) => state === "running")) return status;
  return { ...status, ips: known };
}
