import { ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import fc from "fast-check";
import { PoolReader, planSlices, readMessage } from "../../../packages/agent/src/devices/index.ts";
import { expectedOnly, type FuzzTarget } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const NODE = "node";
const labels = fc.oneof(fc.stringMatching(/^[a-z]([a-z0-9-]{0,5}[a-z0-9])?$/), fc.string({ maxLength: 80 }));
const quantities = fc.constantFrom("1", "10Gi", "-1", "1e999", "", "x");
const attribute = fc.oneof(
  fc.record({ string: fc.string({ maxLength: 80 }) }),
  fc.record({ bool: fc.boolean() }),
  fc.record({ int: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
  fc.record({ version: fc.constantFrom("1.2.3", "1.2.3.4", "") }),
);
const device = fc.record({
  name: labels,
  attributes: fc.dictionary(labels, attribute, { maxKeys: 4 }),
  capacity: fc.dictionary(labels, fc.record({ value: quantities }), { maxKeys: 3 }),
  taints: fc.array(fc.record({ key: labels, effect: fc.constantFrom("NoSchedule", "NoExecute", "Never") }), {
    maxLength: 2,
  }),
  consumesCounters: fc.array(
    fc.record({
      counterSet: labels,
      counters: fc.dictionary(labels, quantities, { maxKeys: 2 }),
    }),
    { maxLength: 2 },
  ),
});
const messages = fc
  .record({
    pools: fc.array(
      fc.record({
        name: fc.constantFrom("", "pool", "Pool", "a/b"),
        devices: fc.array(device, { maxLength: 12 }),
        sharedCounters: fc.array(
          fc.record({
            name: labels,
            counters: fc.dictionary(labels, quantities, { maxKeys: 2 }),
          }),
          { maxLength: 2 },
        ),
      }),
      { maxLength: 3 },
    ),
  })
  .map((message) =>
    ListAndWatchDevicesResponse.encode(ListAndWatchDevicesResponse.fromPartial(message)).finish(),
  );

/** Messages of drivers: what is checked can be planned, and each device is written once. */
export const devices: FuzzTarget = {
  name: "devices",
  about: "device streams of drivers",
  inputs: mutated(messages),
  run(input) {
    const reader = new PoolReader({ driver: "driver.example.com", nodeName: NODE });
    let message: ReturnType<typeof readMessage>;
    try {
      message = readMessage(input);
    } catch (error) {
      // The bytes are no message; the stream fails with it.
      return expectedOnly(error, Error);
    }
    const checked = reader.read(message);
    const plans = planSlices({
      driver: "driver.example.com",
      nodeName: NODE,
      pools: checked.pools,
      stored: [],
    });
    const planned = plans.flatMap(({ pool, writes }) =>
      writes.flatMap(({ devices: written }) => written.map(({ device }) => `${pool}/${device.name}`)),
    );
    const expected = checked.pools.flatMap(({ name, devices: ofPool }) =>
      ofPool.map(({ device }) => `${name}/${device.name}`),
    );
    if (planned.toSorted().join() !== expected.toSorted().join() || new Set(planned).size !== planned.length)
      throw new Error(`planned ${planned.join()} of ${expected.join()}`);
    // The same message again changes nothing.
    const again = reader.read(readMessage(input));
    if (again.pools.some((pool, at) => pool.devices.length !== checked.pools[at]?.devices.length))
      throw new Error("the same message reads differently the second time");
  },
};
