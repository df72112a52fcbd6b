import { Pod, PodIdentity } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";

/**
 * A pod of the node as the agent sends it to eviction plugins. It is decoded lazily, because most plugins look at few
 * pods or only at their names.
 */
export class ActivePod {
  /** The encoded core v1 Pod. */
  readonly bytes: Uint8Array;
  #identity: PodIdentity["metadata"];
  #message: Pod | undefined;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get uid(): string {
    return this.#metadata.uid;
  }

  get namespace(): string {
    return this.#metadata.namespace;
  }

  get name(): string {
    return this.#metadata.name;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.message.metadata?.labels ?? {};
  }

  get annotations(): Readonly<Record<string, string>> {
    return this.message.metadata?.annotations ?? {};
  }

  /** 0 if the pod has no priority. */
  get priority(): number {
    return this.message.spec?.priority ?? 0;
  }

  get nodeName(): string {
    return this.message.spec?.nodeName ?? "";
  }

  /** "Running". */
  get phase(): string {
    return this.message.status?.phase ?? "";
  }

  /** "BestEffort", "Burstable" or "Guaranteed"; empty if the API server does not report it. */
  get qosClass(): string {
    return this.message.status?.qosClass ?? "";
  }

  /** Milliseconds since the epoch; undefined if the pod has not started. */
  get startedAt(): number | undefined {
    const time = this.message.status?.startTime;
    return time && Number(time.seconds) * 1_000;
  }

  /** The parts of the pod that the SDK decodes: containers with their requests and limits, owners, volumes, status. */
  get message(): Pod {
    this.#message ??= Pod.decode(this.bytes);
    return this.#message;
  }

  get #metadata() {
    this.#identity ??= PodIdentity.decode(this.bytes).metadata ?? { name: "", namespace: "", uid: "" };
    return this.#identity;
  }
}
