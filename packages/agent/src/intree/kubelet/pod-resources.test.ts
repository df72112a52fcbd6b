import { createServer, type Socket } from "node:net";
import { ListPodResourcesResponse } from "@nodekeeper/core/gen/podresources/v1/api.ts";
import { deadlineScope, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import { PodResources } from "./pod-resources.ts";
import { FakeKubelet } from "./testing/fake-kubelet.ts";

let kubelet: FakeKubelet;
let client: PodResources;

beforeEach(async () => {
  kubelet = await FakeKubelet.make();
  client = new PodResources(kubelet.socket, 10_000);
});

afterEach(async () => {
  client.close();
  await kubelet[Symbol.asyncDispose]();
});

async function read(ms = 5_000) {
  using scope = deadlineScope(systemClock, { ms, name: "test" });
  return await client.read(scope.signal);
}

const claim = (driverName: string, ...devices: string[]) => ({
  claimName: "web-devices",
  claimNamespace: "default",
  claimResources: devices.map((deviceName) => ({ driverName, poolName: "worker-1", deviceName })),
});

it("reads what is given out and what could be", async () => {
  kubelet.allocatable = {
    devices: [
      { resourceName: "example.com/gpu", deviceIds: ["g0"], topology: { nodes: [{ ID: 1n }, { ID: 0n }] } },
    ],
    cpuIds: [1n, 2n],
    memory: [{ memoryType: "memory", size: 2n ** 40n, topology: { nodes: [{ ID: 0n }] } }],
  };
  kubelet.pods = [
    {
      namespace: "default",
      name: "web",
      containers: [
        { name: "sidecar", cpuIds: [1n], dynamicResources: [claim("nic.example.com", "nic-0")] },
        {
          name: "main",
          cpuIds: [2n],
          devices: [{ resourceName: "example.com/gpu", deviceIds: ["g0"] }],
          dynamicResources: [claim("gpu.example.com", "gpu-0", "gpu-1")],
        },
      ],
    },
  ];
  await kubelet.start();
  expect(await read()).toEqual({
    allocatable: {
      devices: [{ resource: "example.com/gpu", ids: ["g0"], nodes: [0, 1] }],
      cpus: [1, 2],
      memory: [{ type: "memory", bytes: 2n ** 40n, nodes: [0] }],
    },
    pods: [
      {
        namespace: "default",
        name: "web",
        devices: [{ resource: "example.com/gpu", ids: ["g0"], nodes: [] }],
        cpus: [1, 2],
        memory: [],
        claimed: [
          { driver: "nic.example.com", pool: "worker-1", device: "nic-0" },
          { driver: "gpu.example.com", pool: "worker-1", device: "gpu-0" },
          { driver: "gpu.example.com", pool: "worker-1", device: "gpu-1" },
        ],
      },
    ],
  });
});

it("takes a field that it does not know", async () => {
  kubelet.answerList = async () => {
    const known = ListPodResourcesResponse.encode({
      podResources: [{ namespace: "a", name: "b", containers: [] }],
    }).finish();
    return Buffer.concat([known, Buffer.from([0x9a, 0x06, 0x02, 0x01, 0x02])]);
  };
  await kubelet.start();
  expect((await read()).pods).toHaveLength(1);
});

it.each<[string, () => Promise<Uint8Array>, string, RegExp]>([
  ["garbage", async () => Buffer.from([0xff, 0xff, 0xff]), "corrupt", /cannot be decoded/],
  ["half a message", async () => Buffer.from([0x0a, 0x7f, 0x0a]), "corrupt", /cannot be decoded/],
  ["too much", async () => Buffer.alloc(10_001), "exhausted", /larger than 10000 bytes/],
  ["a failure", () => Promise.reject(new ServerError(Status.UNKNOWN, "not now")), "unavailable", /not now/],
])("fails when the kubelet answers with %s", async (_, answer, code, message) => {
  kubelet.answerList = answer;
  await kubelet.start();
  await expect(read()).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

it("fails at the deadline when the kubelet hangs in a call", async () => {
  let isCancelled = false;
  kubelet.answerList = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        isCancelled = true;
        reject(signal.reason);
      });
    });
  await kubelet.start();
  await eventually(async () => {
    await expect(read(200)).rejects.toMatchObject({ code: "deadline" });
    // The first call may end before it has reached a busy kubelet.
    expect(isCancelled).toBe(true);
  });
});

it("fails at the deadline when the process on the socket never responds", async () => {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket.on("error", () => {}))).listen(kubelet.socket);
  try {
    await expect(read(200)).rejects.toMatchObject({ code: "deadline" });
  } finally {
    for (const socket of sockets) socket.destroy();
    mute.close();
  }
});

it("fails when the process on the socket does not serve gRPC", async () => {
  const rude = createServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  rude.listen(kubelet.socket);
  try {
    await expect(read()).rejects.toMatchObject({ code: "unavailable" });
  } finally {
    rude.close();
  }
});

it("fails immediately while the kubelet is unavailable, and reads again afterwards", async () => {
  await expect(read()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("ENOENT"),
  });
  await kubelet.start();
  expect((await read()).pods).toEqual([]);
  await kubelet.stop();
  await expect(read()).rejects.toMatchObject({ code: "unavailable" });
  await kubelet.start();
  expect((await read()).pods).toEqual([]);
});
