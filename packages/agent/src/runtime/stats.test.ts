import { describe, expect, it } from "vitest";
import { connected, failure } from "./testing/connected.ts";

const attributes = { id: "s", metadata: { uid: "a", name: "pod-a", namespace: "default" } };

describe("stats of pods", () => {
  it("keep each reading's time, and what is absent is not 0", async () => {
    const layer = { timestamp: 3n, usedBytes: { value: 2n ** 60n } };
    await using test = await connected({
      listPodSandboxStats: () => ({
        stats: [
          {
            attributes,
            linux: {
              cpu: { timestamp: 1n, usageCoreNanoSeconds: { value: 5n } },
              memory: { timestamp: 2n, workingSetBytes: { value: 0n }, rssBytes: { value: 7n } },
              containers: [{ attributes: { id: "a1" }, writableLayer: layer }, {}],
            },
          },
        ],
      }),
    });
    expect(await test.runtime.podStats(test.signal)).toEqual([
      {
        uid: "a",
        cpu: { takenAt: 1n, usageCoreNanoSeconds: 5n, usageNanoCores: undefined },
        memory: { takenAt: 2n, workingSetBytes: 0n, usageBytes: undefined, rssBytes: 7n },
        containers: [{ id: "a1", writableLayer: { usedBytes: 2n ** 60n, inodesUsed: undefined } }],
      },
    ]);
  });

  it("that were never taken are absent, as containerd's of a layer it has not measured yet", async () => {
    const writableLayer = { timestamp: 0n, usedBytes: { value: 0n }, inodesUsed: { value: 0n } };
    await using test = await connected({
      listPodSandboxStats: () => ({
        stats: [{ attributes, linux: { containers: [{ attributes: { id: "a1" }, writableLayer }] } }],
      }),
    });
    expect(await test.runtime.podStats(test.signal)).toEqual([
      { uid: "a", cpu: undefined, memory: undefined, containers: [{ id: "a1", writableLayer: undefined }] },
    ]);
  });

  it("omit those without attributes", async () => {
    await using test = await connected({
      listPodSandboxStats: () => ({ stats: [{ attributes }, { attributes: { id: "x" } }, {}] }),
    });
    expect(await test.runtime.podStats(test.signal)).toEqual([
      { uid: "a", cpu: undefined, memory: undefined, containers: [] },
    ]);
    expect(await test.anomalies("statsWithoutAttributes")).toBe(2);
  });

  it("fail as other calls do", async () => {
    await using test = await connected({});
    expect(await failure(test.runtime.podStats(test.signal))).toMatchObject({
      code: "unsupported",
      message: expect.stringMatching(/^ListPodSandboxStats: /),
    });
  });
});
