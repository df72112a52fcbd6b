import { describe, expect, it } from "vitest";
import { connected, failure } from "./testing/connected.ts";
import { refusal } from "./testing/cri-server.ts";
import type { ListedContainer, Pod } from "./types.ts";

function podOf(sandboxes: string[], containers: string[]): Pod {
  const listed = (kind: ListedContainer["kind"]) => (id: string) => {
    const one: ListedContainer = { id, name: "", kind, state: "running", attempt: 0, createdAt: 0n };
    return one;
  };
  return {
    uid: "a",
    name: "pod-a",
    namespace: "default",
    sandboxes: sandboxes.map(listed("sandbox")),
    containers: containers.map(listed("container")),
  };
}

describe("the status of a pod", () => {
  it("has everything the runtime reports", async () => {
    await using test = await connected({
      podSandboxStatus: ({ podSandboxId: id }) => ({
        status:
          id === "new"
            ? { id, createdAt: 9n, network: { ip: "10.0.0.9", additionalIps: [{ ip: "fd00::9" }] } }
            : { id, state: 1, createdAt: 1n, metadata: { attempt: 3 }, network: { ip: "10.0.0.1" } },
      }),
      containerStatus: ({ containerId: id }) => ({
        status: {
          id,
          metadata: { name: "main", attempt: 2 },
          state: 2,
          createdAt: 2n,
          startedAt: 3n,
          finishedAt: 4n,
          exitCode: 137,
          image: { image: "sha256:1", userSpecifiedImage: "app:1" },
          imageRef: "app@sha256:2",
          reason: "OOMKilled",
          message: "out of memory",
        },
      }),
    });
    const sandbox = { name: "", kind: "sandbox" };
    expect(await test.runtime.podStatus(podOf(["old", "new"], ["main"]), test.signal)).toEqual({
      uid: "a",
      name: "pod-a",
      namespace: "default",
      ips: ["10.0.0.9", "fd00::9"],
      sandboxes: [
        { ...sandbox, id: "new", state: "running", attempt: 0, createdAt: 9n, ips: ["10.0.0.9", "fd00::9"] },
        { ...sandbox, id: "old", state: "exited", attempt: 3, createdAt: 1n, ips: ["10.0.0.1"] },
      ],
      containers: [
        {
          id: "main",
          name: "main",
          kind: "container",
          state: "exited",
          attempt: 2,
          createdAt: 2n,
          startedAt: 3n,
          finishedAt: 4n,
          exitCode: 137,
          image: "app:1",
          imageRef: "app@sha256:2",
          reason: "OOMKilled",
          message: "out of memory",
        },
      ],
    });
  });

  it("omits removed ones", async () => {
    await using test = await connected({
      podSandboxStatus: ({ podSandboxId: id }) => {
        if (id === "new") throw refusal(5);
        return { status: { id, network: { ip: "10.0.0.1" } } };
      },
      containerStatus: () => Promise.reject(refusal(5)),
    });
    const status = await test.runtime.podStatus(podOf(["new", "old"], ["main"]), test.signal);
    expect(status).toMatchObject({ ips: ["10.0.0.1"], sandboxes: [{ id: "old" }], containers: [] });
  });

  it.each([
    [
      "an answer without a status",
      () => ({}),
      "unavailable",
      "ContainerStatus of bad: the response has no status",
    ],
    [
      "an error",
      () => Promise.reject(refusal(2, "shim has exited")),
      "unavailable",
      "ContainerStatus of bad: shim has exited",
    ],
  ])("fails with %s, which names the container, and asks for nothing more", async (_, bad, code, message) => {
    await using test = await connected(
      { containerStatus: ({ containerId: id }) => (id === "bad" ? bad() : { status: { id } }) },
      { settings: { statusConcurrency: 1 } },
    );
    const reading = test.runtime.podStatus(podOf([], ["good", "bad", "never"]), test.signal);
    expect(await failure(reading)).toMatchObject({ code, message });
    expect(test.server.count("containerStatus")).toBe(2);
  });

  it("is read in parallel, within the bound", async () => {
    let now = 0;
    let most = 0;
    await using test = await connected(
      {
        containerStatus: async ({ containerId: id }) => {
          most = Math.max(most, ++now);
          await new Promise((resolve) => setTimeout(resolve, 5));
          now--;
          return { status: { id } };
        },
      },
      { settings: { statusConcurrency: 4 } },
    );
    const ids = Array.from({ length: 20 }, (_, index) => `c${index}`);
    const { containers } = await test.runtime.podStatus(podOf([], ids), test.signal);
    expect(containers).toHaveLength(20);
    expect(most).toBe(4);
  });

  it("has no address of a pod on the host's network, and leaves out what is none", async () => {
    const ips: Record<string, string[]> = { host: [""], odd: ["10.0.0.1", "not an ip", "fd00::1"] };
    await using test = await connected({
      podSandboxStatus: ({ podSandboxId: id }) => {
        const [ip = "", ...more] = ips[id] ?? [];
        return { status: { id, network: { ip, additionalIps: more.map((one) => ({ ip: one })) } } };
      },
    });
    expect((await test.runtime.podStatus(podOf(["host"], []), test.signal)).ips).toEqual([]);
    expect((await test.runtime.podStatus(podOf(["odd"], []), test.signal)).ips).toEqual([
      "10.0.0.1",
      "fd00::1",
    ]);
    expect(await test.anomalies("invalidIp")).toBe(1);
  });
});
