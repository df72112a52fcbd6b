import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { PodLifecycleClient } from "@nodekeeper/sdk";
import type { SimulatedRuntime } from "@nodekeeper/testing";
import { mapDifferences } from "./map-differences.ts";

/** Where the cache of pods differs from the container runtime. Throws where the agent does not answer. */
export async function lifecycleDifferences(
  client: Pick<PodLifecycleClient, "getPods">,
  runtime: SimulatedRuntime,
): Promise<string[]> {
  const cached = (await client.getPods()).flatMap(({ uid, sandboxes, containers }) => [
    ...sandboxes.map(({ id, state }) => [`${uid} sandbox ${id}`, state] as const),
    ...containers.map(({ id, state }) => [`${uid} container ${id}`, state] as const),
  ]);
  const actual = [
    ...[...runtime.sandboxes.values()].map(
      ({ id, pod, isReady }) => [`${pod.uid} sandbox ${id}`, isReady ? "running" : "exited"] as const,
    ),
    ...[...runtime.containers.values()].map(
      ({ id, pod, state }) => [`${pod.uid} container ${id}`, stateNames[state] ?? "unknown"] as const,
    ),
  ];
  return mapDifferences("lifecycle", Object.fromEntries(actual), Object.fromEntries(cached));
}

const stateNames: Partial<Record<number, string>> = {
  [ContainerState.CONTAINER_CREATED]: "created",
  [ContainerState.CONTAINER_RUNNING]: "running",
  [ContainerState.CONTAINER_EXITED]: "exited",
};
