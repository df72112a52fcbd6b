import { ContainerState as CriContainerState, PodSandboxState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { Anomalies } from "./anomalies.ts";
import type { ContainerState } from "./types.ts";

/**
 * Maps a sandbox state to a container state: ready maps to running, not ready to exited. Unknown values map
 * to `unknown` and are counted as anomalies.
 */
export function sandboxState(state: number, id: string, anomalies: Anomalies): ContainerState {
  if (state === PodSandboxState.SANDBOX_READY) return "running";
  if (state === PodSandboxState.SANDBOX_NOTREADY) return "exited";
  anomalies.report("unknownState", id);
  return "unknown";
}

/** Maps a container state. Unknown values map to `unknown` and are counted as anomalies. */
export function containerState(state: number, id: string, anomalies: Anomalies): ContainerState {
  switch (state) {
    case CriContainerState.CONTAINER_RUNNING:
      return "running";
    case CriContainerState.CONTAINER_EXITED:
      return "exited";
    case CriContainerState.CONTAINER_CREATED:
      return "created";
    case CriContainerState.CONTAINER_UNKNOWN:
      return "unknown";
    default:
      anomalies.report("unknownState", id);
      return "unknown";
  }
}
