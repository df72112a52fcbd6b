import { FakeClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
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
  it.each([
    ["random bytes", () => Uint8Array.from({ length: 300 }, (_, index) => (index * 73 + 11) % 256)],
    ["half a status", () => Uint8Array.of(0x0a, 0x20, 0x0a, 0x10, 0x61)],
  ])("that is %s fails by name, and the next one is fine", async (_, garbage) => {
    const answers = [garbage, () => ({ status: { id: "main" } })];
    await using test = await connected({ containerStatus: () => answers.shift()!() });
    const pod = podOf([], ["main"]);
    expect(await failure(test.runtime.podStatus(pod, test.signal))).toMatchObject({
      id: "NK1407",
      message: expect.stringMatching(
        /^ContainerStatus of main: (failed to read the response|the response has no status)/,
      ),
    });
    expect(await test.runtime.podStatus(pod, test.signal)).toMatchObject({ containers: [{ id: "main" }] });
    expect(test.runtime.connections()).toBe(1);
  });

  it("that is larger than the limit fails with the setting", async () => {
    const settings = { maxMessageSize: 1_000 };
    const message = "x".repeat(1_001);
    await using test = await connected({ containerStatus: () => ({ status: { message } }) }, { settings });
    expect(await failure(test.runtime.podStatus(podOf([], ["main"]), test.signal))).toMatchObject({
      id: "NK1406",
      message: expect.stringMatching(/^ContainerStatus of main: .*runtime\.maxMessageSize is 1000 bytes/),
    });
  });

  it.each([
    ["while others are answered, keeps the connection", true, 1],
    ["of a runtime that answers nothing, is left with its connection", false, 2],
  ])("that hangs, %s", async (_, isOtherAnswered, connections) => {
    const clock = new FakeClock();
    let isHanging = true;
    await using test = await connected(
      {
        containerStatus: ({ containerId: id }) =>
          isHanging && id === "hung" ? new Promise<never>(() => {}) : { status: { id } },
      },
      { clock },
    );
    const hung = failure(test.runtime.podStatus(podOf([], ["hung"]), test.signal));
    await eventually(() => expect(test.server.count("containerStatus")).toBe(1));
    if (isOtherAnswered) await test.runtime.podStatus(podOf([], ["main"]), test.signal);
    await clock.step(120_000);
    expect(await hung).toMatchObject({ code: "deadline" });
    isHanging = false;
    await test.runtime.podStatus(podOf([], ["hung"]), test.signal);
    expect(test.runtime.connections()).toBe(connections);
  });

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
