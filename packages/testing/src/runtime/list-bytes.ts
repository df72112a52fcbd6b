import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { Container, PodSandbox, PodSandboxState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { PodIdentity, SimulatedContainer, SimulatedSandbox } from "./model.ts";

// Field numbers of CRI that the agent's reduced proto omits.
const SANDBOX_LABELS = 5;
const SANDBOX_ANNOTATIONS = 6;
const CONTAINER_IMAGE = 4;
const CONTAINER_IMAGE_REF = 5;
const CONTAINER_LABELS = 8;
const CONTAINER_ANNOTATIONS = 9;
const LIST_ITEM = (1 << 3) | 2;

/**
 * Encodes sandboxes and containers as a real runtime lists them, with labels, annotations and images: about 1.2 and 1.5
 * KB each. Each is encoded once per state.
 */
export class ListBytes {
  readonly #encoded = new WeakMap<object, { state: unknown; bytes: Uint8Array }>();

  /** Returns the response of ListPodSandbox. A response of StreamPodSandboxes has the same encoding. */
  sandboxes(sandboxes: readonly SimulatedSandbox[]): Uint8Array {
    return concat(
      sandboxes.map((sandbox) => this.#bytesOf(sandbox, sandbox.isReady, () => sandboxBytes(sandbox))),
    );
  }

  containers(containers: readonly SimulatedContainer[]): Uint8Array {
    return concat(
      containers.map((container) =>
        this.#bytesOf(container, container.state, () => containerBytes(container)),
      ),
    );
  }

  #bytesOf(item: object, state: unknown, encode: () => Uint8Array): Uint8Array {
    const known = this.#encoded.get(item);
    if (known && known.state === state) return known.bytes;
    const inner = encode();
    const bytes = new BinaryWriter().uint32(LIST_ITEM).bytes(inner).finish();
    this.#encoded.set(item, { state, bytes });
    return bytes;
  }
}

/** Returns the labels by which the kubelet identifies its pods. */
export const podUidLabel = "io.kubernetes.pod.uid";

export function podLabels({ uid, name, namespace }: PodIdentity): Record<string, string> {
  return {
    [podUidLabel]: uid,
    "io.kubernetes.pod.name": name,
    "io.kubernetes.pod.namespace": namespace,
  };
}

function sandboxBytes({ id, pod, attempt, createdAt, isReady }: SimulatedSandbox): Uint8Array {
  const state = isReady ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY;
  const writer = PodSandbox.encode({ id, metadata: { ...pod, attempt }, state, createdAt });
  map(writer, SANDBOX_LABELS, {
    ...podLabels(pod),
    app: pod.name.split("-")[0]!,
    "pod-template-hash": "7d9c5b8f4",
  });
  map(writer, SANDBOX_ANNOTATIONS, { ...ordinaryAnnotations(860), "kubernetes.io/config.source": "api" });
  return writer.finish();
}

function containerBytes(container: SimulatedContainer): Uint8Array {
  const { id, sandboxId, pod, name, attempt, state, createdAt, image } = container;
  const writer = Container.encode({
    id,
    podSandboxId: sandboxId,
    metadata: { name, attempt },
    state,
    createdAt,
  });
  const reference = `${image.split(":")[0]}@sha256:${id}`;
  writer.uint32((CONTAINER_IMAGE << 3) | 2).bytes(new BinaryWriter().uint32(10).string(reference).finish());
  writer.uint32((CONTAINER_IMAGE_REF << 3) | 2).string(reference);
  map(writer, CONTAINER_LABELS, { ...podLabels(pod), "io.kubernetes.container.name": name });
  map(writer, CONTAINER_ANNOTATIONS, {
    ...ordinaryAnnotations(740),
    "io.kubernetes.container.hash": "a5d3e9c1",
    "io.kubernetes.container.restartCount": String(attempt),
    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
    "io.kubernetes.pod.terminationGracePeriod": "30",
  });
  return writer.finish();
}

// Typical size of the annotations of the kubelet and deployment tools.
function ordinaryAnnotations(bytes: number): Record<string, string> {
  return { "kubectl.kubernetes.io/last-applied-configuration": `{"spec":"${"x".repeat(bytes)}"}` };
}

function map(writer: BinaryWriter, field: number, entries: Record<string, string>): void {
  for (const [key, value] of Object.entries(entries)) {
    writer
      .uint32((field << 3) | 2)
      .bytes(new BinaryWriter().uint32(10).string(key).uint32(18).string(value).finish());
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}
