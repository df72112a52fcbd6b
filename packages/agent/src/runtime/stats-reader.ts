import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Anomalies } from "./anomalies.ts";
import type { RuntimeCalls } from "./calls.ts";
import { type ContainerStats, containerStats, type PodStats, podStats } from "./stats.ts";

/**
 * Reads the resource usage of containers and pods. Throws as other calls do: `unsupported` for pods on older runtimes,
 * `notFound` for removed ones.
 */
export interface RuntimeStats {
  container(id: string, signal: AbortSignal): Promise<ContainerStats>;
  /** Usage of all running containers. */
  containers(signal: AbortSignal): Promise<ContainerStats[]>;
  pod(sandboxId: string, signal: AbortSignal): Promise<PodStats>;
  /** Usage of all pods whose sandbox is ready. */
  pods(signal: AbortSignal): Promise<PodStats[]>;
}

/** Reads stats over CRI. */
export class CriStats implements RuntimeStats {
  readonly #calls: RuntimeCalls;
  readonly #anomalies: Anomalies;

  constructor(calls: RuntimeCalls, anomalies: Anomalies) {
    this.#calls = calls;
    this.#anomalies = anomalies;
  }

  async container(id: string, signal: AbortSignal): Promise<ContainerStats> {
    const method = "ContainerStats";
    const { stats } = await this.#calls.ask({ method, id }, signal, (client, callSignal) =>
      client.containerStats({ containerId: id }, { signal: callSignal }),
    );
    return (stats && containerStats(stats)) ?? withoutStats(method, id);
  }

  async containers(signal: AbortSignal): Promise<ContainerStats[]> {
    const { stats } = await this.#calls.ask({ method: "ListContainerStats" }, signal, (client, callSignal) =>
      client.listContainerStats({}, { signal: callSignal }),
    );
    return this.#identified(stats.map(containerStats));
  }

  async pod(sandboxId: string, signal: AbortSignal): Promise<PodStats> {
    const method = "PodSandboxStats";
    const { stats } = await this.#calls.ask({ method, id: sandboxId }, signal, (client, callSignal) =>
      client.podSandboxStats({ podSandboxId: sandboxId }, { signal: callSignal }),
    );
    return (stats && podStats(stats)) ?? withoutStats(method, sandboxId);
  }

  async pods(signal: AbortSignal): Promise<PodStats[]> {
    const { stats } = await this.#calls.ask({ method: "ListPodSandboxStats" }, signal, (client, callSignal) =>
      client.listPodSandboxStats({}, { signal: callSignal }),
    );
    return this.#identified(stats.map(podStats));
  }

  #identified<T>(all: readonly (T | undefined)[]): T[] {
    const identified: T[] = [];
    for (const stats of all) {
      if (stats) identified.push(stats);
      else this.#anomalies.report("statsWithoutAttributes", "");
    }
    return identified;
  }
}

function withoutStats(method: string, id: string): never {
  throw new NodekeeperError("unavailable", `${method} of ${id}: the response has no attributes`);
}
