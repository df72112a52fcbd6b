export { type Clock, FakeClock, silentLogger, systemClock } from "@nodekeeper/core/lib";
export { createDevApiServer, type DevApiServer } from "./apiserver/dev-api-server.ts";
export type { DevStore } from "./apiserver/dev-store.ts";
export { type Machine, thisMachine } from "./apiserver/machine.ts";
export type {
  AccessAttributes,
  DevApiServerOptions,
  Fault,
  ReceivedRequest,
  RequestInfo,
} from "./apiserver/options.ts";
export {
  type AgentSettings,
  type DevCluster,
  type DevClusterOptions,
  startDevCluster,
} from "./cluster/dev-cluster.ts";
export { type SimulatedNodeOptions, simulatedNode } from "./cluster/simulated-node.ts";
export { DevKubelet, type DevKubeletOptions } from "./kubelet/dev-kubelet.ts";
export { type ClaimTemplate, DeviceClaims, type DeviceClaimsOptions } from "./kubelet/device-claims.ts";
export { DraKubelet } from "./kubelet/dra-kubelet.ts";
export { DevPodResources } from "./kubelet/pod-resources.ts";
export { EXIT_CODE, EXITS_AFTER_SECONDS } from "./kubelet/sample-endings.ts";
export { type Workload, WorkloadKeeper, type WorkloadKeeperOptions } from "./kubelet/workload-keeper.ts";
export type { CallFault, RuntimeCall } from "./runtime/call-faults.ts";
export { SimulatedCri, type SimulatedCriOptions } from "./runtime/cri-server.ts";
export type { EventFaults, EventMode } from "./runtime/event-stream.ts";
export type {
  ContainerRequest,
  PodIdentity,
  SimulatedContainer,
  SimulatedEvent,
  SimulatedSandbox,
} from "./runtime/model.ts";
export { type AdmittedPod, ScenarioPlayer, type ScenarioPlayerOptions } from "./runtime/scenario-player.ts";
export { everyday, quiet, type Scenario } from "./runtime/scenarios.ts";
export { SimulatedRuntime, type SimulatedRuntimeOptions } from "./runtime/simulated-runtime.ts";
export { SteppedClock } from "./stepped-clock.ts";
export { eventually, type UntilOptions, until } from "./until.ts";
