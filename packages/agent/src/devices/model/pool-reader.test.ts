import * as wire from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { PoolReader, readMessage } from "../index.ts";
import { driver, nodeName } from "../testing/slice-store.ts";

type Message = Parameters<typeof wire.ListAndWatchDevicesResponse.fromPartial>[0];

function bytesOf(message: Message): Uint8Array {
  const whole = wire.ListAndWatchDevicesResponse.fromPartial(message);
  return wire.ListAndWatchDevicesResponse.encode(whole).finish();
}

const newReader = () => new PoolReader({ driver, nodeName });
const read = (reader: PoolReader, message: Message) => reader.read(readMessage(bytesOf(message)));

/** What a reader without any memory makes of a message. */
function readAfresh(message: Message) {
  const { pools, problems, quarantined } = read(newReader(), message);
  return { pools: pools.map(plain), problems, quarantined };
}

const plain = ({ devices, ...pool }: ReturnType<typeof read>["pools"][number]) => ({
  ...pool,
  devices: devices.map(({ device, fingerprint }) => ({ device, fingerprint })),
});

const attributes: NonNullable<Parameters<typeof wire.Device.fromPartial>[0]["attributes"]>[] = [
  {},
  { x: { int: 1n } },
  { x: {} },
];
const taints: wire.Taint[][] = [[], [{ key: "k", value: "", effect: "NoSchedule", timeAdded: 0n }]];
const consumptions: wire.CounterConsumption[][] = [
  [],
  [{ counterSet: "set", counters: { left: "1" }, compatibilityGroups: [] }],
];
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

test("after any messages before, a message means what it means alone", () => {
  fc.assert(
    fc.property(fc.array(fc.array(pool, { maxLength: 2 }), { minLength: 1, maxLength: 6 }), (messages) => {
      const reader = newReader();
      for (const pools of messages) {
        const answer = read(reader, { pools });
        expect({ ...answer, pools: answer.pools.map(plain) }).toEqual(readAfresh({ pools }));
      }
    }),
    { numRuns: 300 },
  );
});

test("any change of some devices among many means what the whole message means", () => {
  const name = (at: number) => ({ name: `gpu-${at}` });
  const edit = fc.record({
    at: fc.nat(99),
    count: fc.nat(3),
    to: fc.array(fc.record({ serial: fc.bigInt({ min: 0n, max: 1n << 40n }), bad: fc.boolean() }), {
      maxLength: 3,
    }),
  });
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 5 }), (edits) => {
      const reader = newReader();
      let devices: NonNullable<NonNullable<Message["pools"]>[number]["devices"]> = Array.from(
        { length: 100 },
        (_, at) => name(at),
      );
      read(reader, { pools: [{ devices }] });
      for (const { at, count, to } of edits) {
        const changed = to.map(({ serial, bad }, next) => ({
          ...name(at + next),
          attributes: { [bad ? "not good" : "serial"]: { int: serial } },
        }));
        devices = devices.toSpliced(at, count, ...changed);
        const answer = read(reader, { pools: [{ devices }] });
        expect({ ...answer, pools: answer.pools.map(plain) }).toEqual(readAfresh({ pools: [{ devices }] }));
      }
    }),
    { numRuns: 100 },
  );
});

test("what did not change is not read again, wherever it is in the message", () => {
  const reader = newReader();
  const devices = Array.from({ length: 200 }, (_, at) => ({ name: `gpu-${at}` }));
  const before = read(reader, { pools: [{ devices }] }).pools[0]!.devices;
  const changed = { name: "gpu-50", allNodes: false, bindsToNode: true };
  const inPlace = read(reader, { pools: [{ devices: devices.with(50, changed) }] }).pools[0]!.devices;
  expect(inPlace.filter((item) => !before.includes(item)).map((item) => item.device.name)).toEqual([
    "gpu-50",
  ]);
  const moved = [...devices.slice(100), { name: "new" }, ...devices.slice(0, 100)].with(151, changed);
  const after = read(reader, { pools: [{ devices: moved }] }).pools[0]!.devices;
  expect(after.filter((item) => !inPlace.includes(item)).map((item) => item.device.name)).toEqual(["new"]);
});

test("a device of bytes that make no sense is quarantined, the others are published", () => {
  const pool = Buffer.from([0x12, 2, 0xff, 0xff, 0x12, 3, 0x0a, 1, 0x62]);
  const answer = newReader().read(readMessage(Buffer.from([0x0a, pool.length, ...pool])));
  expect(answer.pools[0]!.devices.map((item) => item.device.name)).toEqual(["b"]);
  expect(answer.problems).toMatchObject([
    { pool: nodeName, message: expect.stringMatching(/^not a device/) },
  ]);
  expect(answer.quarantined).toBe(1);
});

test("bytes that are no message any more, where only some differ from those before, are refused as alone", () => {
  const devices = Array.from({ length: 20 }, (_, at) => ({ name: `gpu-${at}` }));
  const bytes = bytesOf({ pools: [{ name: "pool", devices }] });
  const broken = Buffer.from(bytes);
  // The length of the device's field, beyond the end of the message.
  broken[broken.indexOf("gpu-18") - 3] = 0x7f;
  const reader = newReader();
  reader.read(readMessage(bytes));
  const alone = newReader().read(readMessage(broken));
  expect(alone.problems).toMatchObject([{ field: "pools" }]);
  expect(reader.read(readMessage(broken))).toEqual(alone);
});
