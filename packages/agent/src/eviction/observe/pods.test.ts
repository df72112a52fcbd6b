import { readFileSync } from "node:fs";
import { type DeepPartial, Pod, PodIdentity } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { describe, expect, it } from "vitest";
import { podOfEnvelope } from "../testing/protobuf-pod.ts";
import { observeJson } from "./observed-pod.ts";
import { qosLevelReader } from "./qos-level.ts";
import { qosClassOf, readPod } from "./read-pod.ts";

const fixture = (name: string) =>
  readFileSync(new URL(`../../../../../test/fixtures/eviction/${name}`, import.meta.url), "utf8");
const podJson = () => JSON.parse(fixture("pod.json")) as KubeObject;
// The same pod as Kubernetes' own code (k8s.io/api v0.36.3) writes it.
const podProtobuf = () => Uint8Array.from(Buffer.from(fixture("pod.protobuf.base64"), "base64"));

describe("a pod of the API server", () => {
  const expected = {
    uid: "0f0e7c1c-6a0a-4c58-9d6e-3a5b8f6a1d2e",
    namespace: "shop",
    name: "web-6d4b75cb6d-x2x7q",
    nodeName: "node-1",
    phase: "Running",
    labels: { app: "web", "pod-template-hash": "6d4b75cb6d", empty: "" },
    annotationKeys: [
      "example.com/note",
      "katalyst.kubewharf.io/pod_soft_evict_notify",
      "katalyst.kubewharf.io/qos_level",
    ],
    owner: { kind: "ReplicaSet", name: "web-6d4b75cb6d", uid: "u-2" },
    qosLevel: "dedicated_cores",
    qosClass: "Burstable",
    priority: 1000,
    priorityClassName: "shop-high",
    deletionTimestamp: Date.UTC(2026, 7, 2),
    startTime: Date.UTC(2026, 7, 1, 10, 20, 31),
    gracePeriodSeconds: 45,
    isStatic: false,
    isMirror: false,
    softEvictNotify: true,
  };

  it("is read from JSON", () => expect(observeJson(podJson()).pod).toEqual(expected));
  it("is read from protobuf", () =>
    expect(readPod(podOfEnvelope(podProtobuf()), qosLevelReader())).toEqual(expected));

  it("is encoded as Kubernetes encodes it, as far as the lean message goes", () => {
    const ours = Pod.decode(observeJson(podJson()).encoded());
    const theirs = podOfEnvelope(podProtobuf());
    // Go has no absent structs: it writes empty ones.
    for (const condition of theirs.status!.conditions) condition.lastProbeTime = undefined;
    const { containerStatuses, initContainerStatuses } = theirs.status!;
    for (const status of [...containerStatuses, ...initContainerStatuses]) {
      if (status.lastState?.terminated === undefined) status.lastState = undefined;
    }
    expect(ours).toEqual(theirs);
  });

  it("is encoded once, and only when it is asked for", () => {
    const observed = observeJson(podJson());
    const bytes = observed.encoded();
    expect(observed.encoded()).toBe(bytes);
    expect(PodIdentity.decode(bytes).metadata).toEqual({
      uid: expected.uid,
      namespace: "shop",
      name: expected.name,
    });
  });

  it("needs a UID and a name", () => {
    expect(() => observeJson({ metadata: { name: "a" } })).toThrow(/no UID/);
    expect(() => observeJson({ metadata: { uid: "a" } })).toThrow(/no name/);
  });
});

describe("what is absent", () => {
  it("has Kubernetes' defaults", () => {
    const { pod } = observeJson({ metadata: { uid: "u", name: "a", namespace: "b" } });
    expect(pod).toMatchObject({
      nodeName: "",
      owner: null,
      qosLevel: "shared_cores",
      qosClass: "BestEffort",
      priority: 0,
      gracePeriodSeconds: 30,
      deletionTimestamp: null,
      isStatic: false,
      isMirror: false,
    });
  });
});

it.each([
  ["kubernetes.io/config.source", "file", { isStatic: true, isMirror: false }],
  ["kubernetes.io/config.source", "api", { isStatic: false, isMirror: false }],
  ["kubernetes.io/config.mirror", "hash", { isStatic: false, isMirror: true }],
  ["katalyst.kubewharf.io/qos_level", "reclaimed_cores", { qosLevel: "reclaimed_cores" }],
  ["katalyst.kubewharf.io/qos_level", "constructor", { qosLevel: "unknown" }],
  ["katalyst.kubewharf.io/pod_soft_evict_notify", "false", { softEvictNotify: false }],
])("the annotation %s: %s means %o", (key, value, expected) => {
  const metadata = { uid: "u", name: "a", annotations: { [key]: value } };
  expect(readPod(Pod.fromPartial({ metadata }), qosLevelReader())).toMatchObject(expected);
});

describe("the QoS class", () => {
  const quantities = (list: Record<string, string> = {}) =>
    Object.fromEntries(Object.entries(list).map(([name, string]) => [name, { string }]));
  const container = (requests?: Record<string, string>, limits?: Record<string, string>) => ({
    resources: { requests: quantities(requests), limits: quantities(limits) },
  });
  const both = { cpu: "1", memory: "1Gi" };

  it.each<[string, DeepPartial<Pod["spec"]>]>([
    ["BestEffort", {}],
    ["BestEffort", { containers: [container(), container()] }],
    ["BestEffort", { containers: [container({ cpu: "0", "ephemeral-storage": "1Gi" })] }],
    ["Burstable", { containers: [container({ cpu: "1m" })] }],
    ["Burstable", { containers: [container(undefined, { memory: "1Gi" })] }],
    ["Burstable", { containers: [container(both, both), container()] }],
    ["Burstable", { containers: [container(both, both)], initContainers: [container()] }],
    ["Burstable", { containers: [container({ cpu: "1", memory: "512Mi" }, both)] }],
    ["Guaranteed", { containers: [container(both, both)] }],
    [
      "Guaranteed",
      {
        containers: [container({ cpu: "1000m", memory: "1024Mi" }, both)],
        initContainers: [container(both, both)],
      },
    ],
    ["Guaranteed", { containers: [container()], resources: container(both, both).resources }],
    ["Burstable", { containers: [container(both, both)], resources: container({ cpu: "1" }).resources }],
  ])("is %s for %j", (expected, spec) => expect(qosClassOf(Pod.fromPartial({ spec: spec! }))).toBe(expected));

  it("is the stated one, but for one that makes no sense", () => {
    expect(qosClassOf(Pod.fromPartial({ status: { qosClass: "Guaranteed" } }))).toBe("Guaranteed");
    expect(qosClassOf(Pod.fromPartial({ status: { qosClass: "constructor" } }))).toBe("BestEffort");
  });
});
