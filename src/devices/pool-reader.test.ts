import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createClient, createServer } from "nice-grpc";
import { expect, test } from "vitest";
import * as wire from "../gen/nodekeeper/devices/v1alpha1/api.ts";
import { ListAndWatchDevicesFrame } from "../gen/nodekeeper/devices/v1alpha1/frames.ts";
import { dialUnix } from "../grpc/index.ts";
import {
  checkPools,
  decodePools,
  type Feature,
  framedDeviceDriver,
  PoolReader,
  withoutFeatures,
} from "./index.ts";
import { nodeName } from "./testing.ts";

type Message = Parameters<typeof wire.ListAndWatchDevicesResponse.fromPartial>[0];

function frameOf(message: Message): ListAndWatchDevicesFrame {
  const whole = wire.ListAndWatchDevicesResponse.fromPartial(message);
  return ListAndWatchDevicesFrame.decode(wire.ListAndWatchDevicesResponse.encode(whole).finish());
}

/** What reading without any memory gives. */
function readAnew(message: Message, without: ReadonlySet<Feature>) {
  const decoded = decodePools(wire.ListAndWatchDevicesResponse.fromPartial(message), nodeName);
  const reduced = withoutFeatures(decoded.pools, without);
  const { pools, quarantined } = checkPools(reduced.pools);
  return {
    pools,
    quarantined: quarantined + reduced.problems.filter(({ device }) => device !== undefined).length,
  };
}

const attributes: NonNullable<Parameters<typeof wire.Device.fromPartial>[0]["attributes"]>[] = [
  {},
  { x: { int: 1n } },
  { x: {} },
];
const taints: wire.Taint[][] = [[], [{ key: "k", value: "", effect: "NoSchedule", timeAdded: 0n }]];
const consumptions: wire.CounterConsumption[][] = [[], [{ counterSet: "set", counters: { left: "1" } }]];
const counterSets: wire.CounterSet[][] = [[], [{ name: "set", counters: { left: "1" } }]];

const device = fc.record({
  name: fc.constantFrom("a", "b", "c", "d", "Bad"),
  attributes: fc.constantFrom(...attributes),
  taints: fc.constantFrom(...taints),
  consumesCounters: fc.constantFrom(...consumptions),
});
const pool = fc.record({
  name: fc.constantFrom("one", "two"),
  devices: fc.array(device, { maxLength: 6 }),
  sharedCounters: fc.constantFrom(...counterSets),
  perDeviceNodes: fc.boolean(),
});
const step = fc.record({
  pools: fc.array(pool, { maxLength: 2 }),
  without: fc.subarray<Feature>(["DRADeviceTaints", "DRAPartitionableDevices"]),
});

test("after any messages before, a message says what it says alone", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
      const reader = new PoolReader({ nodeName });
      for (const { pools, without } of steps) {
        const features = new Set(without);
        expect(reader.read(frameOf({ pools }), features)).toMatchObject(readAnew({ pools }, features));
      }
    }),
    { numRuns: 500 },
  );
});

test("what did not change is not read again, wherever it is in the message", () => {
  const reader = new PoolReader({ nodeName });
  const devices = Array.from({ length: 200 }, (_, at) => ({ name: `gpu-${at}` }));
  const before = reader.read(frameOf({ pools: [{ devices }] })).pools[0]!.devices;
  const changed = { name: "gpu-50", allNodes: false, bindsToNode: true };
  const moved = [...devices.slice(100), { name: "new" }, ...devices.slice(0, 100)].with(151, changed);
  const after = reader.read(frameOf({ pools: [{ devices: moved }] })).pools[0]!.devices;
  const read = after.filter((item) => !before.includes(item)).map((item) => item.device.name);
  expect(read).toEqual(["new", "gpu-50"]);
});

test("a device of bytes that make no sense is held back, the others go on", () => {
  const frame = frameOf({ pools: [{ devices: [{ name: "a" }, { name: "b" }] }] });
  frame.pools[0]!.devices[0] = Buffer.from([0xff, 0xff]);
  const answer = new PoolReader({ nodeName }).read(frame);
  expect(answer.pools[0]!.devices.map((item) => item.device.name)).toEqual(["b"]);
  expect(answer.problems).toMatchObject([
    { pool: nodeName, message: expect.stringMatching(/^not a device/) },
  ]);
  expect(answer.quarantined).toBe(1);
});

test("over a real socket, from a driver that knows nothing of frames", async () => {
  const folder = await mkdtemp(join(tmpdir(), "nodekeeper-devices-"));
  const path = join(folder, "dra.sock");
  const server = createServer();
  server.add(wire.DeviceDriverDefinition, {
    async *listAndWatchDevices(request) {
      yield wire.ListAndWatchDevicesResponse.fromPartial({
        pools: [{ name: request.nodeName, devices: [{ name: "gpu", attributes: { index: { int: 7n } } }] }],
      });
    },
  });
  await server.listen(`unix:${path}`);
  const channel = dialUnix(path, { maxReceiveBytes: 1_000_000 });
  try {
    const client = createClient(framedDeviceDriver, channel);
    const reader = new PoolReader({ nodeName });
    const names: unknown[] = [];
    for await (const frame of client.listAndWatchDevices(
      { nodeName },
      { signal: AbortSignal.timeout(5_000) },
    )) {
      names.push(...reader.read(frame).pools.map(({ name, devices }) => [name, devices[0]?.device]));
    }
    expect(names).toEqual([[nodeName, { name: "gpu", attributes: { index: { int: 7 } } }]]);
  } finally {
    channel.close();
    await server.shutdown();
    await rm(folder, { recursive: true });
  }
});
