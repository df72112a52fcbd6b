import {
  AllocatableResourcesResponse,
  ListPodResourcesResponse,
  type PodResources,
  PodResourcesListerDefinition,
} from "@nodekeeper/core/gen/podresources/v1/api.ts";
import { type Runnable, untilAborted } from "@nodekeeper/core/lib";
import { createServer } from "nice-grpc";

/**
 * Serves the kubelet's PodResources API on a unix socket, like a kubelet without static CPU and memory managers and
 * without device plugins: pods hold only the devices of their claims.
 */
export class DevPodResources implements Runnable {
  readonly name = "dev PodResources";
  readonly #socket: string;
  readonly #list: () => PodResources[];

  /** @param list returns the pods that run on the node, with their resources */
  constructor(socket: string, list: () => PodResources[]) {
    this.#socket = socket;
    this.#list = list;
  }

  async run(signal: AbortSignal): Promise<void> {
    const server = createServer();
    server.add(PodResourcesListerDefinition, {
      list: async () => ListPodResourcesResponse.fromPartial({ podResources: this.#list() }),
      getAllocatableResources: async () => AllocatableResourcesResponse.fromPartial({}),
      get: async ({ podName, podNamespace }) => ({
        podResources: this.#list().find(
          ({ name, namespace }) => name === podName && namespace === podNamespace,
        ),
      }),
    });
    await server.listen(`unix:${this.#socket}`);
    await untilAborted(signal);
    server.forceShutdown();
  }
}
