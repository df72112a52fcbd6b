import { isIP } from "node:net";
import { PodNotInspectable } from "@nodekeeper/api/errors";
import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import {
  ContainerStatusRequest,
  ContainerStatusResponse,
  type ContainerStatus as CriContainerStatus,
  type PodSandboxStatus as CriSandboxStatus,
  PodSandboxStatusRequest,
  PodSandboxStatusResponse,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { UnaryResponse } from "@nodekeeper/core/grpc";
import { codeOf, messageOf, type NodekeeperError } from "@nodekeeper/core/lib";
import type { Anomalies } from "./anomalies.ts";
import type { Call, RuntimeCalls } from "./calls.ts";
import { mapInParallel } from "./parallel.ts";
import { newestFirst } from "./pod-grouping.ts";
import type { RuntimeSettings } from "./settings.ts";
import { containerState, sandboxState } from "./states.ts";
import type { ContainerStatus, Pod, PodStatus, SandboxStatus } from "./types.ts";

export interface RuntimeStatusesOptions {
  calls: RuntimeCalls;
  anomalies: Anomalies;
  settings: RuntimeSettings;
}

/** Reads the statuses of sandboxes and containers. */
export class RuntimeStatuses {
  readonly #options: RuntimeStatusesOptions;

  constructor(options: RuntimeStatusesOptions) {
    this.#options = options;
  }

  /**
   * Reads the status of all sandboxes and containers of a pod. Omits removed ones; other failures are thrown.
   */
  async ofPod(pod: Pod, signal: AbortSignal): Promise<PodStatus> {
    const { uid, name, namespace } = pod;
    const sandboxes: SandboxStatus[] = [];
    const containers: ContainerStatus[] = [];
    const readings = [
      ...pod.sandboxes.map(({ id }) => async (all: AbortSignal) => {
        const status = await unlessRemoved(this.#sandbox(id, all));
        if (status) sandboxes.push(status);
      }),
      ...pod.containers.map(({ id }) => async (all: AbortSignal) => {
        const status = await unlessRemoved(this.#container(id, all));
        if (status) containers.push(status);
      }),
    ];
    await mapInParallel(readings, this.#options.settings.statusConcurrency, signal, (read, all) => read(all));
    sandboxes.sort(newestFirst);
    containers.sort(newestFirst);
    return { uid, name, namespace, ips: sandboxes[0]?.ips ?? [], sandboxes, containers };
  }

  /**
   * Returns the pod named by a container's labels. Undefined if there is none, or if the container was
   * removed.
   */
  async ownerOf(id: string, deadlineMs: number, signal: AbortSignal): Promise<PodIdentity | undefined> {
    const status = await unlessRemoved(
      this.#askContainer({ method: "ContainerStatus", id, deadlineMs }, id, signal),
    );
    const uid = status?.labels["io.kubernetes.pod.uid"];
    if (!status || !uid) return undefined;
    return {
      uid,
      name: status.labels["io.kubernetes.pod.name"] ?? "",
      namespace: status.labels["io.kubernetes.pod.namespace"] ?? "",
    };
  }

  async #sandbox(id: string, signal: AbortSignal): Promise<SandboxStatus> {
    const call: Call = { method: "PodSandboxStatus", id };
    const request = PodSandboxStatusRequest.fromPartial({ podSandboxId: id });
    const bytes = PodSandboxStatusRequest.encode(request).finish();
    const { status } = await this.#ask(call, bytes, PodSandboxStatusResponse, signal);
    if (!status) throw notReadable(call, "the response has no status");
    return {
      id,
      name: "",
      kind: "sandbox",
      state: sandboxState(status.state, id, this.#options.anomalies),
      attempt: status.metadata?.attempt ?? 0,
      createdAt: status.createdAt,
      ips: this.#ipsOf(status),
    };
  }

  async #container(id: string, signal: AbortSignal): Promise<ContainerStatus> {
    const status = await this.#askContainer({ method: "ContainerStatus", id }, id, signal);
    return {
      id,
      name: status.metadata?.name ?? "",
      kind: "container",
      state: containerState(status.state, id, this.#options.anomalies),
      attempt: status.metadata?.attempt ?? 0,
      createdAt: status.createdAt,
      // The image name from the pod spec, if the runtime records it.
      image: status.image?.userSpecifiedImage || status.image?.image || "",
      imageRef: status.imageRef,
      startedAt: status.startedAt,
      finishedAt: status.finishedAt,
      exitCode: status.exitCode,
      reason: status.reason,
      message: status.message,
    };
  }

  async #askContainer(call: Call, containerId: string, signal: AbortSignal): Promise<CriContainerStatus> {
    const request = ContainerStatusRequest.fromPartial({ containerId });
    const bytes = ContainerStatusRequest.encode(request).finish();
    const { status } = await this.#ask(call, bytes, ContainerStatusResponse, signal);
    if (!status) throw notReadable(call, "the response has no status");
    return status;
  }

  async #ask<Response>(
    call: Call,
    request: Uint8Array,
    response: { decode(bytes: Uint8Array): Response },
    signal: AbortSignal,
  ): Promise<Response> {
    const { calls, settings } = this.#options;
    const { method } = call;
    const bytes = await calls.ask(call, signal, (_client, callSignal, { raw }) =>
      raw.call(method, request, new UnaryResponse(method, settings.maxMessageSize), callSignal),
    );
    try {
      return response.decode(bytes);
    } catch (error) {
      throw notReadable(call, `failed to read the response: ${messageOf(error)}`);
    }
  }

  #ipsOf({ id, network }: CriSandboxStatus): string[] {
    if (!network) return [];
    const ips: string[] = [];
    for (const ip of [network.ip, ...network.additionalIps.map((additional) => additional.ip)]) {
      // The runtime reports no IP for a pod in the host network.
      if (ip === "") continue;
      if (isIP(ip) === 0) this.#options.anomalies.report("invalidIp", id);
      else ips.push(ip);
    }
    return ips;
  }
}

async function unlessRemoved<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (codeOf(error) === "notFound") return undefined;
    throw error;
  }
}

function notReadable({ method, id }: Call, why: string): NodekeeperError {
  return new PodNotInspectable({ problem: `${method} of ${id}: ${why}` });
}
