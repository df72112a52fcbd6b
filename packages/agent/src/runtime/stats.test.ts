import { describe, expect, it } from "vitest";
import { connected, failure } from "./testing/connected.ts";
import { refusal } from "./testing/cri-server.ts";

const nothing = { cpu: undefined, memory: undefined, writableLayer: undefined };

describe("stats", () => {
  it("of a container keep each reading's time, and what is absent is not 0", async () => {
    await using test = await connected({
      containerStats: ({ containerId: id }) => ({
        stats: {
          attributes: { id, metadata: { name: "main" } },
          cpu: { timestamp: 1n, usageCoreNanoSeconds: { value: 2n ** 60n } },
          memory: { timestamp: 2n, workingSetBytes: { value: 0n }, rssBytes: { value: 7n } },
          writableLayer: { timestamp: 3n, usedBytes: { value: 9n } },
        },
      }),
    });
    expect(await test.runtime.stats.container("a1", test.signal)).toEqual({
      id: "a1",
      name: "main",
      cpu: { takenAt: 1n, usageCoreNanoseconds: 2n ** 60n, usageNanoCores: undefined },
      memory: {
        takenAt: 2n,
        workingSetBytes: 0n,
        availableBytes: undefined,
        usageBytes: undefined,
        rssBytes: 7n,
      },
      writableLayer: { takenAt: 3n, usedBytes: 9n, inodesUsed: undefined },
    });
  });

  it("that were never taken are absent, as containerd's of a layer it has not measured yet", async () => {
    await using test = await connected({
      containerStats: () => ({
        stats: {
          attributes: { id: "a1" },
          cpu: { timestamp: 1n },
          writableLayer: { timestamp: 0n, usedBytes: { value: 0n }, inodesUsed: { value: 0n } },
        },
      }),
    });
    expect(await test.runtime.stats.container("a1", test.signal)).toEqual({
      id: "a1",
      name: "",
      ...nothing,
      cpu: { takenAt: 1n, usageCoreNanoseconds: undefined, usageNanoCores: undefined },
    });
  });

  it("of a pod have its containers", async () => {
    const attributes = { id: "s", metadata: { uid: "a", name: "pod-a", namespace: "default" } };
    await using test = await connected({
      podSandboxStats: () => ({
        stats: {
          attributes,
          linux: {
            memory: { timestamp: 5n, usageBytes: { value: 6n } },
            process: { timestamp: 7n, processCount: { value: 8n } },
            containers: [{ attributes: { id: "a1" } }, {}],
          },
        },
      }),
      listPodSandboxStats: () => ({ stats: [{ attributes }, { attributes: { id: "x" } }] }),
    });
    const pod = { uid: "a", name: "pod-a", namespace: "default", sandboxId: "s", cpu: undefined };
    expect(await test.runtime.stats.pod("s", test.signal)).toEqual({
      ...pod,
      memory: {
        takenAt: 5n,
        usageBytes: 6n,
        workingSetBytes: undefined,
        availableBytes: undefined,
        rssBytes: undefined,
      },
      processes: { takenAt: 7n, count: 8n },
      containers: [{ id: "a1", name: "", ...nothing }],
    });
    expect(await test.runtime.stats.pods(test.signal)).toEqual([
      { ...pod, memory: undefined, processes: undefined, containers: [] },
    ]);
    expect(await test.anomalies("statsWithoutAttributes")).toBe(1);
  });

  it("of all containers omit those without attributes", async () => {
    await using test = await connected({
      listContainerStats: () => ({ stats: [{ attributes: { id: "a1" } }, {}] }),
    });
    expect(await test.runtime.stats.containers(test.signal)).toEqual([{ id: "a1", name: "", ...nothing }]);
    expect(await test.anomalies("statsWithoutAttributes")).toBe(1);
  });

  it("fail as other calls do", async () => {
    await using test = await connected({
      containerStats: () => Promise.reject(refusal(5, "no such container")),
      podSandboxStats: () => ({}),
    });
    const { stats } = test.runtime;
    expect(await failure(stats.container("a1", test.signal))).toMatchObject({
      code: "notFound",
      message: "ContainerStats of a1: no such container",
    });
    expect(await failure(stats.pod("s", test.signal))).toMatchObject({ code: "unavailable" });
    expect(await failure(stats.pods(test.signal))).toMatchObject({ code: "unsupported" });
  });
});
