// Client of the container runtime (CRI runtime.v1). Terms:
// pod: the sandboxes and containers with the same pod UID; status: PodSandboxStatus and ContainerStatus of a
// pod.
// list: a complete list of sandboxes and containers, or a partial one by state or sandbox.
// hint: a container event of the runtime. stats: resource usage of pods.
// anomaly: invalid data in a response, counted and logged once.
export { CriRuntime, type CriRuntimeOptions } from "./cri-runtime.ts";
export { broadcastsEvents } from "./hints.ts";
export type { RuntimeSettings } from "./settings.ts";
export type { PodStats, PodStatsReader } from "./stats.ts";
export type * from "./types.ts";
