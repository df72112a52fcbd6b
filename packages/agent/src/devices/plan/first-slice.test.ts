import { ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { inputs } from "../../../../../test/support/sizes.ts";
import { PoolReader, readMessage } from "../index.ts";
import type { PoolHead } from "../model/pool-head.ts";
import { allocatable } from "../testing/allocatable.ts";
import { driver, nodeName, SliceStore, wholePlan } from "../testing/slice-store.ts";
import { planFirstSlice } from "./first-slice.ts";

type Kind = "plain" | "invalid" | "tainted" | "duplicate";

/** Reads a message with devices, all plain except those at some positions. Returns its pools, and the head as offered. */
function read(count: number, exceptions: readonly (readonly [number, Kind])[]) {
  const kinds = new Map(exceptions);
  const devices = Array.from({ length: count }, (_, at) => {
    const kind = kinds.get(at);
    const name =
      kind === "invalid" ? "Not a name" : `device-${kind === "duplicate" ? Math.max(0, at - 1) : at}`;
    return { name, taints: kind === "tainted" ? [{ key: "k", effect: "NoSchedule" }] : [] };
  });
  const message = ListAndWatchDevicesResponse.fromPartial({ pools: [{ name: nodeName, devices }] });
  const bytes = ListAndWatchDevicesResponse.encode(message).finish();
  const heads: PoolHead[] = [];
  let readAfter = 0;
  const steps = new PoolReader({ driver, nodeName }).steps(readMessage(bytes), (head) => heads.push(head));
  for (;;) {
    const { done, value } = steps.next();
    if (heads.length > 0) readAfter++;
    if (done) return { heads, readAfter, pools: value.pools };
  }
}

const namesOf = (pools: ReturnType<typeof read>["pools"]) =>
  pools.flatMap(({ devices }) => devices.map(({ name }) => name));

test("the first slice of a large pool is offered before the other devices are read, and is not written again", () => {
  const { heads, readAfter, pools } = read(10_000, []);
  expect(heads).toMatchObject([{ slices: 79 }]);
  expect(readAfter).toBeGreaterThan(50);
  const store = new SliceStore();
  for (const write of store.writesOf(wholePlan([planFirstSlice(driver, nodeName, heads[0]!)]))) write();
  expect(allocatable([...store.objects.values()], nodeName).pools).toMatchObject([{ state: "incomplete" }]);
  const { deletes, updates, creates } = store.sync(pools);
  expect([deletes.length, updates.length, creates.length]).toEqual([0, 0, 78]);
  expect(allocatable([...store.objects.values()], nodeName).devices).toEqual(namesOf(pools));
});

test("no slice is offered of a pool that is small, or whose first devices need a feature or are invalid", () => {
  expect(read(896, []).heads).toEqual([]);
  expect(read(897, []).heads).toHaveLength(1);
  for (const kind of ["invalid", "tainted", "duplicate"] as const)
    expect(read(10_000, [[100, kind]]).heads).toEqual([]);
});

test("whatever the other devices are, a reader sees all valid devices or waits", () => {
  const kind = fc.constantFrom<Kind>("invalid", "tainted", "duplicate");
  const exceptions = fc.array(fc.tuple(fc.integer({ min: 128, max: 2_500 }), kind), { maxLength: 300 });
  fc.assert(
    fc.property(
      fc.integer({ min: 897, max: 2_500 }),
      exceptions,
      fc.infiniteStream(fc.nat()),
      (count, others, random) => {
        const { heads, pools } = read(count, others);
        const store = new SliceStore();
        const writes = store.writesOf(wholePlan([planFirstSlice(driver, nodeName, heads[0]!)]));
        const devices = namesOf(pools);
        const seen = () => {
          const all = allocatable([...store.objects.values()], nodeName, { toleratesTaints: true });
          return all.pools.every(({ state }) => state === "complete") ? all.devices : undefined;
        };
        writes.pop()!();
        expect(seen()).toBeUndefined();
        writes.push(...store.writesOf(store.plan(pools)));
        while (writes.length > 0) {
          writes.splice(random.next().value! % writes.length, 1)[0]!();
          expect([undefined, devices]).toContainEqual(seen());
        }
        expect(seen()).toEqual(devices);
      },
    ),
    { numRuns: inputs(50) },
  );
});
