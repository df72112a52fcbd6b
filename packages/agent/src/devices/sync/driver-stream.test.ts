import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NodeDefinition } from "@nodekeeper/core/gen/dra/v1alpha3/api.ts";
import { DeviceDriverDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import { FakeClock, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { eventually, until } from "@nodekeeper/testing/until";
import { createServer, ServerError, Status } from "nice-grpc";
import { expect, it } from "vitest";
import { type DriverMessage, followDriver, type StreamState } from "./driver-stream.ts";

const namesIn = (names: string) => names.split(",").map((name) => ({ name }));

/** Follows a driver that sends devices of these names, a message for each or for several with commas, and ends its stream. */
async function follow(
  protocol: "devices" | "namedResources",
  messages: string[],
  maxReceiveBytes = 1_000_000,
) {
  const directory = mkdtempSync(join(tmpdir(), "nkstream-"));
  const endpoint = join(directory, "driver.sock");
  const requests: unknown[] = [];
  const server = createServer();
  server.add(DeviceDriverDefinition, {
    async *listAndWatchDevices(request) {
      requests.push(request);
      for (const names of messages) yield { pools: [{ devices: namesIn(names) }] };
    },
  });
  server.add(NodeDefinition, {
    async *nodeListAndWatchResources() {
      for (const names of messages) yield { resources: [{ namedResources: { instances: namesIn(names) } }] };
    },
  });
  await server.listen(`unix:${endpoint}`);
  const taken: DriverMessage[] = [];
  const states: [StreamState, string | undefined][] = [];
  const stop = new AbortController();
  try {
    const contract = protocol === "devices" ? ("nodekeeper.devices.v1alpha2" as const) : undefined;
    const options = { endpoint, nodeName: "worker-1", contract, maxReceiveBytes };
    for await (const { state, error, message } of followDriver(
      { ...options, clock: systemClock, log: silentLogger },
      stop.signal,
    )) {
      if (message) taken.push(message);
      states.push([state, error]);
      if (state === "failing") stop.abort();
    }
  } finally {
    server.forceShutdown();
    rmSync(directory, { recursive: true });
  }
  return { taken, states, requests };
}

it.each(["devices", "namedResources"] as const)(
  "%s: a message equal to the one before is skipped",
  async (protocol) => {
    const { taken, states } = await follow(protocol, ["a", "a", "a", "b", "a"]);
    expect(taken).toHaveLength(3);
    expect(states.at(-1)).toEqual(["ended", undefined]);
  },
);

it("a message of 1.30 with too many instances fails the stream before it is decoded", async () => {
  const { taken, states } = await follow("namedResources", ["small", ",".repeat(220_000)]);
  expect(taken).toHaveLength(1);
  expect(states.at(-1)).toEqual([
    "failing",
    expect.stringContaining("more than 220000 resources, instances"),
  ]);
});

it("the driver learns the node's name", async () => {
  const { requests } = await follow("devices", []);
  expect(requests).toMatchObject([{ nodeName: "worker-1" }]);
});

it("messages larger than the windows of HTTP/2 arrive whole", async () => {
  const name = "x".repeat(6_000_000);
  const { taken } = await follow("devices", ["small", name], 10_000_000);
  const sizes = taken.map((message) =>
    message.protocol === "devices" ? message.message.pools[0]!.length : 0,
  );
  expect(sizes[1]).toBeGreaterThan(6_000_000);
});

it("a message beyond the limit fails the stream with its size", async () => {
  const { taken, states } = await follow("devices", ["small", "x".repeat(2_000)], 1_000);
  expect(taken).toHaveLength(1);
  expect(states.at(-1)).toEqual([
    "failing",
    expect.stringMatching(/message of 2\d{3} bytes is larger than 1000/),
  ]);
});

it("a stream that breaks is started again at once, and later with a backoff, until one was open for 30 s", async () => {
  const directory = mkdtempSync(join(tmpdir(), "nkstream-"));
  const endpoint = join(directory, "driver.sock");
  let watches = 0;
  let breakStream = () => {};
  const server = createServer();
  server.add(DeviceDriverDefinition, {
    async *listAndWatchDevices() {
      watches++;
      const broken = new Promise<void>((resolve) => {
        breakStream = resolve;
      });
      yield { pools: [{ devices: [{ name: `device-${watches}` }] }] };
      await broken;
      throw new ServerError(Status.UNAVAILABLE, "the driver broke its stream");
    },
  });
  await server.listen(`unix:${endpoint}`);
  const clock = new FakeClock();
  const messages: DriverMessage[] = [];
  const delays: number[] = [];
  const stop = new AbortController();
  const follow = async () => {
    const updates = followDriver(
      {
        endpoint,
        nodeName: "worker-1",
        contract: "nodekeeper.devices.v1alpha2",
        maxReceiveBytes: 1_000_000,
        clock,
        log: {
          ...silentLogger,
          warn: (fields: { retryInMs: number }) => void delays.push(fields.retryInMs),
        } as never,
        random: () => 0.5,
      },
      stop.signal,
    );
    for await (const { message } of updates) if (message) messages.push(message);
  };
  const following = follow();
  const streams = (count: number) =>
    until(`stream ${count}`, () => watches === count && messages.length === count);
  try {
    await streams(1);
    breakStream();
    // The clock stands.
    await streams(2);
    breakStream();
    await eventually(() => expect(delays).toEqual([0, 5_000]));
    await clock.step(5_000);
    await streams(3);
    breakStream();
    await eventually(() => expect(delays).toEqual([0, 5_000, 10_000]));
    await clock.step(10_000);
    await streams(4);
    await clock.step(30_001);
    breakStream();
    await streams(5);
    expect(delays).toEqual([0, 5_000, 10_000, 0]);
  } finally {
    stop.abort();
    await following;
    server.forceShutdown();
    rmSync(directory, { recursive: true });
  }
});
