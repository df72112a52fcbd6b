import {
  AllocatableResourcesResponse,
  ListPodResourcesResponse,
  type PodResources,
  PodResourcesListerDefinition,
} from "@nodekeeper/core/gen/podresources/v1/api.ts";
import { type Runnable, untilAborted } from "@nodekeeper/core/lib";
import { createServer } from "nice-grpc";

/**
 * Serves the kubelet's PodResources on a unix socket, as a kubelet without static managers of CPUs and memory and without
 * device plugins: what pods hold are the devices of their claims.
 */
export class DevPodResources implements Runnable {
  readonly name = "dev PodResources";
  readonly #socket: string;
  readonly #list: () => PodResources[];

  /** @param list the pods that run on the node, with what they hold */
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
