import { ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { PoolReader, readMessage } from "../../agent/src/devices/index.ts";
import { deltaOf } from "./device-delta.ts";
import type { DevicePool } from "./index.ts";

const device = fc.record({ id: fc.nat(11), value: fc.nat(2) });
const pools = fc
  .array(fc.uniqueArray(device, { selector: ({ id }) => id, maxLength: 12 }), { minLength: 1, maxLength: 2 })
  .map((all) =>
    all.map(
      (devices, at): DevicePool => ({
        name: `pool-${at}`,
        devices: devices.map(({ id, value }) => ({
          name: `gpu-${id}`,
          attributes: { value: { int: BigInt(value) } },
        })),
      }),
    ),
  );

const messageOf = (message: Parameters<typeof ListAndWatchDevicesResponse.fromPartial>[0]) =>
  readMessage(ListAndWatchDevicesResponse.encode(ListAndWatchDevicesResponse.fromPartial(message)).finish());
const devicesOf = ({ pools: all }: ReturnType<PoolReader["read"]>) =>
  all.map(({ name, devices }) => [name, devices.map((checked) => checked.device)]);

test("a delta, where there is one, leads to the new state", () => {
  fc.assert(
    fc.property(pools, pools, (before, after) => {
      const deltas = deltaOf(before, after);
      if (!deltas) return;
      const options = { driver: "gpu.example.com", nodeName: "worker-1" };
      const reader = new PoolReader(options);
      reader.read(messageOf({ pools: before }));
      const { delta } = messageOf({ revision: 2n, delta: { baseRevision: 1n, pools: deltas } });
      expect(devicesOf(reader.apply(delta!))).toEqual(
        devicesOf(new PoolReader(options).read(messageOf({ pools: after }))),
      );
    }),
    { numRuns: 500 },
  );
});

const gpus = (...names: string[]): DevicePool[] => [{ name: "p", devices: names.map((name) => ({ name })) }];

test.each<[string, DevicePool[], DevicePool[], string[] | undefined, string[]]>([
  ["nothing", gpus("a", "b"), gpus("a", "b"), [], []],
  ["one more", gpus("a", "b", "c"), gpus("a", "b", "c", "d"), ["d"], []],
  ["one less", gpus("a", "b", "c"), gpus("a", "c"), [], ["b"]],
  ["one more in between", gpus("a", "b", "c", "d"), gpus("a", "new", "b", "c", "d"), undefined, []],
  ["another order", gpus("a", "b", "c"), gpus("b", "a", "c"), undefined, []],
  ["another pool", gpus("a"), [...gpus("a"), { name: "q" }], undefined, []],
  ["the pool itself", gpus("a"), [{ ...gpus("a")[0]!, skipNodeOperations: ["*"] }], undefined, []],
  ["nearly all", gpus("a", "b", "c"), gpus("d", "e", "f"), undefined, []],
])("what changed: %s", (_, before, after, upserts, removals) => {
  const deltas = deltaOf(before, after);
  expect(deltas?.flatMap((delta) => delta.upserts?.map(({ name }) => name) ?? [])).toEqual(upserts);
  expect(deltas?.flatMap((delta) => delta.removals ?? []) ?? []).toEqual(removals);
});
