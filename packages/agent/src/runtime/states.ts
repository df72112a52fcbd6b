import { ContainerState as CriContainerState, PodSandboxState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { Oddities } from "./oddities.ts";
import type { ContainerState } from "./types.ts";

/** A sandbox' state in the terms of containers: ready is running. What CRI does not know is `unknown`, and counted. */
export function sandboxState(state: number, id: string, oddities: Oddities): ContainerState {
  if (state === PodSandboxState.SANDBOX_READY) return "running";
  if (state === PodSandboxState.SANDBOX_NOTREADY) return "exited";
  oddities.report("unknownState", id);
  return "unknown";
}

/** A container's state. What CRI does not know is `unknown`, and counted. */
export function containerState(state: number, id: string, oddities: Oddities): ContainerState {
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
      oddities.report("unknownState", id);
      return "unknown";
  }
}
