import { eventually } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { connected, containerOf, sandboxOf } from "./testing/connected.ts";
import { type CriAnswers, refusal } from "./testing/cri-server.ts";

const labels = {
  "io.kubernetes.pod.uid": "a",
  "io.kubernetes.pod.name": "pod-a",
  "io.kubernetes.pod.namespace": "default",
};

const orphaned: CriAnswers = {
  listPodSandbox: () => ({ items: [sandboxOf("b")] }),
  listContainers: () => ({ containers: [containerOf("deleted", "a1"), containerOf("b-sandbox", "b1")] }),
};

describe("odd answers", () => {
  it.each([
    ["sandboxWithoutMetadata", { id: "odd", createdAt: 1n }],
    ["sandboxWithoutUid", { id: "odd", metadata: { name: "pod-odd", namespace: "default" } }],
    ["itemWithoutId", { ...sandboxOf("odd"), id: "" }],
    ["duplicateId", { ...sandboxOf("odd"), id: "a-sandbox" }],
  ])("%s: the sandbox is left out and counted, the rest is there", async (kind, odd) => {
    await using test = await connected({
      listPodSandbox: () => ({ items: [sandboxOf("a"), odd, sandboxOf("b")] }),
      listContainers: () => ({}),
    });
    expect((await test.runtime.listPods(test.signal)).map(({ uid }) => uid)).toEqual(["a", "b"]);
    expect(await test.anomalies(kind)).toBe(1);
    await test.runtime.listPods(test.signal);
    expect(await test.anomalies(kind)).toBe(2);
  });

  it("duplicateId: of containers the first is kept", async () => {
    await using test = await connected({
      listPodSandbox: () => ({ items: [sandboxOf("a"), sandboxOf("b")] }),
      listContainers: () => ({
        containers: [containerOf("a-sandbox", "c"), { ...containerOf("b-sandbox", "c"), state: 2 }],
      }),
    });
    expect(await test.runtime.listPods(test.signal)).toMatchObject([
      { uid: "a", containers: [{ id: "c", state: "running" }] },
      { uid: "b", containers: [] },
    ]);
    expect(await test.anomalies("duplicateId")).toBe(1);
  });

  it("unknownState: what CRI does not know yet is unknown, in lists and statuses", async () => {
    const state = 77 as 0;
    await using test = await connected({
      listPodSandbox: () => ({ items: [{ ...sandboxOf("a"), state }] }),
      listContainers: () => ({ containers: [{ ...containerOf("a-sandbox", "a1"), state }] }),
      podSandboxStatus: () => ({ status: { ...sandboxOf("a"), state } }),
      containerStatus: () => ({ status: { id: "a1", state } }),
    });
    const [pod] = await test.runtime.listPods(test.signal);
    const status = await test.runtime.podStatus(pod!, test.signal);
    for (const { sandboxes, containers } of [pod!, status]) {
      expect([...sandboxes, ...containers].map((one) => one.state)).toEqual(["unknown", "unknown"]);
    }
    expect(await test.anomalies("unknownState")).toBe(4);
  });

  it("CONTAINER_UNKNOWN is a state, and no anomaly", async () => {
    await using test = await connected({
      listPodSandbox: () => ({ items: [sandboxOf("a")] }),
      listContainers: () => ({ containers: [{ ...containerOf("a-sandbox", "a1"), state: 3 }] }),
    });
    expect(await test.runtime.listPods(test.signal)).toMatchObject([{ containers: [{ state: "unknown" }] }]);
    expect(await test.anomalies("unknownState")).toBe(0);
  });

  it("a container without metadata is there without a name", async () => {
    await using test = await connected({
      listPodSandbox: () => ({ items: [sandboxOf("a")] }),
      listContainers: () => ({ containers: [{ id: "a1", podSandboxId: "a-sandbox" }] }),
    });
    expect(await test.runtime.listPods(test.signal)).toMatchObject([
      { containers: [{ id: "a1", name: "", state: "created" }] },
    ]);
  });
});

describe("a container without a sandbox", () => {
  it("is given to the pod that its labels name, which are read once", async () => {
    await using test = await connected({
      ...orphaned,
      containerStatus: ({ containerId }) => ({ status: { id: containerId, labels } }),
    });
    for (let round = 0; round < 3; round++) {
      expect(await test.runtime.listPods(test.signal)).toMatchObject([
        { uid: "b", containers: [{ id: "b1" }] },
        { uid: "a", name: "pod-a", namespace: "default", sandboxes: [], containers: [{ id: "a1" }] },
      ]);
    }
    expect(test.server.count("containerStatus")).toBe(1);
    expect(await test.anomalies("containerWithoutSandbox")).toBe(3);
  });

  it("is known without a look when its sandbox was listed before", async () => {
    await using test = await connected({
      listPodSandbox: () => ({ items: [sandboxOf("a")] }),
      listContainers: () => ({ containers: [containerOf("a-sandbox", "a1")] }),
    });
    await test.runtime.listPods(test.signal);
    test.server.answers.listPodSandbox = () => ({});
    expect(await test.runtime.listPods(test.signal)).toMatchObject([
      { uid: "a", name: "pod-a", sandboxes: [], containers: [{ id: "a1" }] },
    ]);
    expect(test.server.count("containerStatus")).toBe(0);
  });

  it("is left out when its labels name no pod, and not looked up again", async () => {
    await using test = await connected({ ...orphaned, containerStatus: () => ({ status: { id: "a1" } }) });
    for (let round = 0; round < 3; round++) {
      expect((await test.runtime.listPods(test.signal)).map(({ uid }) => uid)).toEqual(["b"]);
    }
    expect(test.server.count("containerStatus")).toBe(1);
    expect(await test.anomalies("containerOfNoPod")).toBe(3);
  });

  it.each([
    ["fails", () => Promise.reject(refusal(13, "broken"))],
    ["hangs", () => new Promise<never>(() => {})],
  ])("is left out when the look %s, and looked up again with the next list", async (_, containerStatus) => {
    await using test = await connected(
      { ...orphaned, containerStatus },
      { settings: { ownerLookupDeadlineMs: 50 } },
    );
    expect((await test.runtime.listPods(test.signal)).map(({ uid }) => uid)).toEqual(["b"]);
    expect(await test.anomalies("containerPodUnknown")).toBe(1);
    test.server.answers.containerStatus = () => ({ status: { id: "a1", labels } });
    await eventually(async () =>
      expect((await test.runtime.listPods(test.signal)).map(({ uid }) => uid)).toEqual(["b", "a"]),
    );
  });

  it("holds up a list once, however many there are, when the runtime hangs", async () => {
    await using test = await connected(
      {
        listPodSandbox: () => ({ items: [sandboxOf("b")] }),
        listContainers: () => ({
          containers: Array.from({ length: 50 }, (_, index) => containerOf("deleted", `c${index}`)),
        }),
        containerStatus: () => new Promise<never>(() => {}),
      },
      { settings: { ownerLookupDeadlineMs: 50 } },
    );
    expect(await test.runtime.listPods(test.signal)).toMatchObject([{ uid: "b" }]);
    // As many as run side by side, and on a busy machine fewer: the time of one look is over before they are sent.
    expect(test.server.count("containerStatus")).toBeLessThanOrEqual(8);
  });

  it("does not hold up a list with thousands of its like", async () => {
    await using test = await connected(
      {
        listPodSandbox: () => ({}),
        listContainers: () => ({
          containers: Array.from({ length: 2_000 }, (_, index) => containerOf("deleted", `c${index}`)),
        }),
        containerStatus: ({ containerId }) => ({ status: { id: containerId, labels } }),
      },
      { settings: { ownerLookups: 10 } },
    );
    for (const known of [10, 20]) {
      const [pod] = await test.runtime.listPods(test.signal);
      expect(pod?.containers).toHaveLength(known);
      expect(test.server.count("containerStatus")).toBe(known);
    }
  });
});
