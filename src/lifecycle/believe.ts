import type { ContainerState, ListedContainer, Pod, PodStatus } from "../runtime/index.ts";

/**
 * A pod as list and inspection agree on it. An exit in the list which the inspection, being the later reading,
 * contradicts is not believed: that container is taken as running (containerd's lists and statuses can differ
 * while a container starts). Gives the same object back where nothing is doubted.
 */
export function believe(listed: Pod, status: PodStatus): Pod {
  const running = new Set<string>();
  for (const { id, state } of [...status.containers, ...status.sandboxes]) {
    if (state === "running") running.add(id);
  }
  const doubted = ({ id, state }: ListedContainer) => state === "exited" && running.has(id);
  if (!listed.containers.some(doubted) && !listed.sandboxes.some(doubted)) return listed;
  const corrected = (container: ListedContainer): ListedContainer =>
    doubted(container) ? { ...container, state: "running" satisfies ContainerState } : container;
  return {
    ...listed,
    containers: listed.containers.map(corrected),
    sandboxes: listed.sandboxes.map(corrected),
  };
}

/** The status with the last known addresses where a finished pod has lost its own: its network went first. */
export function withKnownIps(status: PodStatus, known: readonly string[]): PodStatus {
  if (status.ips.length > 0 || known.length === 0) return status;
  if (status.sandboxes.some(({ state }) => state === "running")) return status;
  return { ...status, ips: known };
}
