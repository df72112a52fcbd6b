import {
  AllocatableResourcesRequest,
  AllocatableResourcesResponse,
  ListPodResourcesRequest,
  ListPodResourcesResponse,
  type MessageFns,
  PodResourcesListerDefinition,
} from "@nodekeeper/core/gen/podresources/v1/api.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { type KubeletAnswer, kubeletAnswer } from "./answer.ts";

const { fullName, methods } = PodResourcesListerDefinition;

/**
 * Client of the kubelet's PodResources API. Connects on the first call, and reconnects after the kubelet was
 * unavailable:
 * https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/#monitoring-device-plugin-resources
 */
export class PodResources {
  readonly #path: string;
  readonly #channel: UnaryChannel;

  /**
   * @param path absolute path of the socket, at most 107 bytes; throws `invalid` otherwise
   * @param maxAnswerBytes larger responses fail with `exhausted`
   */
  constructor(path: string, maxAnswerBytes = 4 * 1024 * 1024) {
    this.#path = path;
    this.#channel = new UnaryChannel(path, { maxReceiveBytes: maxAnswerBytes });
  }

  /** Calls GetAllocatableResources and List. The caller's signal bounds the time. Throws `corrupt` for invalid data. */
  async read(signal: AbortSignal): Promise<KubeletAnswer> {
    const allocatable = await this.#call(
      methods.getAllocatableResources.name,
      AllocatableResourcesRequest.encode({}).finish(),
      AllocatableResourcesResponse,
      signal,
    );
    const list = await this.#call(
      methods.list.name,
      ListPodResourcesRequest.encode({}).finish(),
      ListPodResourcesResponse,
      signal,
    );
    return kubeletAnswer(allocatable, list);
  }

  close(): void {
    this.#channel.close();
  }

  async #call<T>(
    method: string,
    request: Uint8Array,
    response: MessageFns<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const bytes = await this.#channel.call(`${fullName}/${method}`, [request], signal);
    try {
      return response.decode(bytes);
    } catch (error) {
      throw new NodekeeperError("corrupt", `${method} of ${this.#path}: the response cannot be decoded`, {
        cause: error,
      });
    }
  }
}

/**
 * Returns the devices of ResourceClaims used by the kubelet's running pods, as `<driver>/<pool>/<device>`. Empty if the
 * kubelet does not report claims, the default before Kubernetes 1.34: an empty set does not mean that no device is in
 * use. Throws `unsupported` if the kubelet does not name the devices (before Kubernetes 1.31), `unavailable` if it can't
 * be reached.
 * @param path as in `PodResources`
 */
export async function devicesInUse(path: string, signal: AbortSignal): Promise<Set<string>> {
  const podResources = new PodResources(path);
  try {
    const { pods } = await podResources.read(signal);
    const claimed = pods.flatMap((pod) => pod.claimed);
    if (claimed.some(({ driver }) => driver === ""))
      throw new NodekeeperError("unsupported", "the kubelet does not name the devices of claims");
    return new Set(claimed.map(({ driver, pool, device }) => `${driver}/${pool}/${device}`));
  } finally {
    podResources.close();
  }
}
