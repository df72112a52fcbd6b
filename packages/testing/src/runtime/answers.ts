import {
  type ContainerFilter,
  ContainerState,
  type ContainerStatsFilter,
  type PodSandboxFilter,
  PodSandboxState,
  type RuntimeServiceDefinition,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";
import { ListBytes, podLabels } from "./list-bytes.ts";
import type { SimulatedContainer, SimulatedSandbox } from "./model.ts";
import type { SimulatedRuntime } from "./simulated-runtime.ts";
import { containerStats, containerStatus, sandboxStats, sandboxStatus } from "./statuses.ts";

type Methods = (typeof RuntimeServiceDefinition)["methods"];
export type MethodName = keyof Methods;
type Request<M extends MethodName> = ReturnType<Methods[M]["requestType"]["decode"]>;
type Answer<M extends MethodName> = Parameters<Methods[M]["responseType"]["fromPartial"]>[0] | Uint8Array;
type UnaryName = { [M in MethodName]: Methods[M]["responseStream"] extends true ? never : M }[MethodName];

/** Handlers of unary calls. They return a message or its encoding. */
export type UnaryAnswers = {
  [M in UnaryName]: (request: Request<M>, signal: AbortSignal) => Promise<Answer<M>> | Answer<M>;
};

export interface AnswersOptions {
  runtime: SimulatedRuntime;
  clock: Clock;
  /** Returns the runtime's name and version. Called for each Version call. */
  version: () => { name: string; version: string };
}

/** Selects and encodes list items, for unary and streamed calls. */
export interface ListAnswers {
  sandboxes(filter: PodSandboxFilter | undefined): SimulatedSandbox[];
  containers(filter: ContainerFilter | undefined): SimulatedContainer[];
  readonly bytes: ListBytes;
}

export function listAnswers(runtime: SimulatedRuntime): ListAnswers {
  return {
    bytes: new ListBytes(),
    sandboxes: (filter) =>
      [...runtime.sandboxes.values()].filter(
        ({ id, isReady, pod }) =>
          (!filter?.id || id.startsWith(filter.id)) &&
          (!filter?.state || (filter.state.state === PodSandboxState.SANDBOX_READY) === isReady) &&
          hasLabels(() => podLabels(pod), filter?.labelSelector),
      ),
    containers: (filter) =>
      [...runtime.containers.values()].filter(
        ({ id, state, sandboxId, pod, name }) =>
          (!filter?.id || id.startsWith(filter.id)) &&
          (!filter?.state || filter.state.state === state) &&
          (!filter?.podSandboxId || sandboxId.startsWith(filter.podSandboxId)) &&
          hasLabels(
            () => ({ ...podLabels(pod), "io.kubernetes.container.name": name }),
            filter?.labelSelector,
          ),
      ),
  };
}

/** Returns the handlers of the CRI calls that the agent makes. */
export function unaryAnswers({ runtime, clock, version }: AnswersOptions, lists: ListAnswers): UnaryAnswers {
  const sandboxOf = (id: string) => runtime.sandboxes.get(id) ?? missing("sandbox", id);
  const containerOf = (id: string) => runtime.containers.get(id) ?? missing("container", id);
  const statsOf = (filter: ContainerStatsFilter | undefined) =>
    lists
      .containers(filter && { ...filter, state: undefined })
      .filter(({ state }) => state === ContainerState.CONTAINER_RUNNING)
      .map((container) => containerStats(container, clock.now()));
  return {
    version: () => {
      const { name, version: runtimeVersion } = version();
      return { version: "0.1.0", runtimeName: name, runtimeVersion, runtimeApiVersion: "v1" };
    },
    status: () => ({
      status: {
        conditions: ["RuntimeReady", "NetworkReady"].map((type) => ({ type, status: true })),
      },
    }),
    listPodSandbox: ({ filter }) => lists.bytes.sandboxes(lists.sandboxes(filter)),
    listContainers: ({ filter }) => lists.bytes.containers(lists.containers(filter)),
    podSandboxStatus: ({ podSandboxId }) => ({ status: sandboxStatus(sandboxOf(podSandboxId)) }),
    containerStatus: ({ containerId }) => ({ status: containerStatus(containerOf(containerId)) }),
    stopContainer: async ({ containerId, timeout }, signal) => {
      await runtime.stopContainer(containerId, Number(timeout) * 1_000, signal);
      return {};
    },
    containerStats: ({ containerId }) => ({ stats: containerStats(containerOf(containerId), clock.now()) }),
    listContainerStats: ({ filter }) => ({ stats: statsOf(filter) }),
    podSandboxStats: ({ podSandboxId }) => ({
      stats: sandboxStats(sandboxOf(podSandboxId), runtime.containersOf(podSandboxId), clock.now()),
    }),
    listPodSandboxStats: ({ filter }) => ({
      stats: lists
        .sandboxes(filter && { ...filter, state: undefined })
        .filter(({ isReady }) => isReady)
        .map((sandbox) => sandboxStats(sandbox, runtime.containersOf(sandbox.id), clock.now())),
    }),
  };
}

// Labels are created only if the caller selects by labels, so that plain lists are cheap.
function hasLabels(
  labels: () => Record<string, string>,
  selector: Record<string, string> | undefined,
): boolean {
  const wanted = Object.entries(selector ?? {});
  if (wanted.length === 0) return true;
  const present = labels();
  return wanted.every(([key, value]) => present[key] === value);
}

function missing(what: string, id: string): never {
  throw new NodekeeperError("notFound", `${what} ${id}: not found`);
}
