import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inputs } from "../../../../../test/support/sizes.ts";
import { type Device, type DevicePool, decodeSpec, limits } from "../index.ts";
import { allocatable } from "../testing/allocatable.ts";
import { checked, namesUpTo, nodeName, poolOf, SliceStore } from "../testing/slice-store.ts";

type Change =
  | { kind: "insert" | "insertTainted" | "remove" | "move"; at: number; count: number }
  | { kind: "taint" | "heal" | "change"; at: number; count: number };

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom("insert", "insertTainted", "remove", "move", "taint", "heal", "change"),
  at: fc.nat(999),
  count: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) }, fc.integer({ min: 1, max: 300 })),
});

/** Applies a change to a list of devices; `serial` gives new names. */
function apply(devices: Device[], { kind, at, count }: Change, serial: () => number): Device[] {
  const from = Math.floor((at / 1_000) * (devices.length + 1));
  const part = devices.slice(from, from + count);
  const rest = devices.toSpliced(from, count);
  const fresh = Array.from({ length: count }, () => ({ name: `new-${serial()}` }));
  switch (kind) {
    case "insert":
      return devices.toSpliced(from, 0, ...fresh);
    case "insertTainted":
      return devices.toSpliced(from, 0, ...fresh.map(tainted));
    case "remove":
      return rest;
    case "move":
      return rest.toSpliced(Math.floor(rest.length / 3), 0, ...part);
    case "taint":
      return devices.toSpliced(from, count, ...part.map(tainted));
    case "heal":
      return devices.toSpliced(from, count, ...part.map(({ taints: _, ...device }) => device));
    case "change":
      return devices.toSpliced(
        from,
        count,
        ...part.map((device) => ({ ...device, attributes: { serial: { int: serial() } } })),
      );
  }
}

function tainted(device: Device): Device {
  return { ...device, taints: [{ key: "unhealthy", effect: "NoSchedule" }] };
}

/** What the scheduler allocates from a pool, tainted devices too; undefined while it waits for the rest of the slices. */
function readPool(store: SliceStore, pool: string): string[] | undefined {
  const slices = [...store.objects.values()].filter(
    (object) => decodeSpec(store.version, object).pool.name === pool,
  );
  const { devices, pools } = allocatable(slices, nodeName, { toleratesTaints: true });
  return pools.every(({ state }) => state === "complete") ? devices : undefined;
}

function generationOf(store: SliceStore): number {
  return Math.max(0, ...store.stored.map(({ pool }) => pool.generation));
}

/** That the store shows exactly these pools, by the rules. */
function expectExactly(store: SliceStore, pools: DevicePool[]): void {
  for (const pool of pools) {
    expect(readPool(store, pool.name)).toEqual(pool.devices.map(({ name }) => name));
    const slices = store.stored.filter((slice) => slice.pool.name === pool.name);
    expect(new Set(slices.map((slice) => slice.pool.generation)).size).toBe(1);
    expect(new Set(slices.map((slice) => slice.pool.resourceSliceCount))).toEqual(new Set([slices.length]));
  }
  expect(new Set(store.stored.map((slice) => slice.pool.name))).toEqual(
    new Set(pools.map(({ name }) => name)),
  );
  for (const object of store.objects.values()) {
    const { devices = [] } = decodeSpec(store.version, object);
    expect(object.metadata.name).toMatch(/^[0-9a-f]{5}-gpu\.example\.com-worker-1-h[0-9a-v]{9}$/);
    const isAdvanced = devices.some(({ taints }) => taints?.length);
    expect(devices.length).toBeLessThanOrEqual(
      isAdvanced ? limits.advancedDevicesPerSlice : limits.devicesPerSlice,
    );
  }
}

function newSerial(): () => number {
  let last = 0;
  return () => ++last;
}

describe("planSlices, whatever happens", () => {
  test("a plan gives exactly what the driver reports, and there is nothing more to do", () => {
    fc.assert(
      fc.property(fc.nat(700), fc.array(change, { maxLength: 8 }), (size, changes) => {
        const store = new SliceStore();
        const serial = newSerial();
        let devices: Device[] = namesUpTo(size).map((name) => ({ name }));
        for (const step of [undefined, ...changes]) {
          if (step) devices = apply(devices, step, serial);
          const before = generationOf(store);
          store.sync(checked(poolOf(devices)));
          expectExactly(store, [poolOf(devices)]);
          expect(generationOf(store)).toBeGreaterThanOrEqual(before);
          expect(store.plan(checked(poolOf(devices)))).toEqual({ deletes: [], updates: [], creates: [] });
        }
      }),
      { numRuns: inputs(100) },
    );
  });

  test("between the writes a reader sees the old devices, the new ones, or waits", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        change,
        fc.array(fc.nat(5), { maxLength: 2 }),
        fc.infiniteStream(fc.nat()),
        (size, step, victims, random) => {
          const store = new SliceStore();
          const before = namesUpTo(size).map((name) => ({ name }));
          store.sync(checked(poolOf(before)));
          for (const victim of victims) store.objects.delete([...store.objects.keys()][victim] ?? "");
          const after = apply(before, step, newSerial());
          const names = [before, after].map((devices) => devices.map(({ name }) => name));
          const writes = store.writesOf(store.plan(checked(poolOf(after))));
          // The API server and the reader's watch may take them in any order.
          while (writes.length > 0) {
            const at = random.next().value! % writes.length;
            writes.splice(at, 1)[0]!();
            const seen = readPool(store, "worker-1");
            if (seen) expect(names).toContainEqual(seen);
          }
          expectExactly(store, [poolOf(after)]);
        },
      ),
      { numRuns: inputs(100) },
    );
  });

  test("a death at any point of the writes, and other reports after it, end well", () => {
    fc.assert(
      fc.property(fc.nat(600), fc.array(fc.tuple(change, fc.nat(20)), { maxLength: 6 }), (size, steps) => {
        const store = new SliceStore();
        const serial = newSerial();
        let devices: Device[] = namesUpTo(size).map((name) => ({ name }));
        for (const [step, done] of steps) {
          for (const write of store.writesOf(store.plan(checked(poolOf(devices)))).slice(0, done)) write();
          devices = apply(devices, step, serial);
        }
        store.sync(checked(poolOf(devices)));
        expectExactly(store, [poolOf(devices)]);
      }),
      { numRuns: inputs(100) },
    );
  });

  test("a layout whose writes were not all made is not taken for what is stored", () => {
    const store = new SliceStore();
    const serial = newSerial();
    let devices: Device[] = namesUpTo(385).map((name) => ({ name }));
    const steps: [Parameters<typeof apply>[1], number][] = [
      [{ kind: "remove", at: 169, count: 130 }, 1],
      [{ kind: "taint", at: 0, count: 1 }, 4],
      [{ kind: "change", at: 0, count: 1 }, 1],
    ];
    for (const [step, done] of steps) {
      for (const write of store.writesOf(store.plan(checked(poolOf(devices)))).slice(0, done)) write();
      devices = apply(devices, step, serial);
    }
    store.sync(checked(poolOf(devices)));
    expectExactly(store, [poolOf(devices)]);
  });

  test("slices that another client deletes come back, and nothing else is written", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2_000 }),
        fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
        (size, victims) => {
          const store = new SliceStore();
          const pools = checked(poolOf(namesUpTo(size)));
          store.sync(pools);
          const names = [...store.objects.keys()];
          const deleted = new Set(victims.map((victim) => names[victim % names.length]!));
          for (const name of deleted) store.objects.delete(name);
          const plan = store.sync(pools);
          expectExactly(store, [poolOf(namesUpTo(size))]);
          expect(plan.updates).toEqual([]);
          expect(plan.creates.map(({ name }) => name)).toEqual([...deleted].sort());
        },
      ),
      { numRuns: inputs(100) },
    );
  });

  test("one changed device among many touches one slice", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_500 }), fc.nat(), (size, which) => {
        const store = new SliceStore();
        const devices: Device[] = namesUpTo(size).map((name) => ({ name }));
        store.sync(checked(poolOf(devices)));
        const at = which % size;
        devices[at] = { ...devices[at]!, attributes: { health: { string: "bad" } } };
        const plan = store.sync(checked(poolOf(devices)));
        expect(plan).toMatchObject({ deletes: [], creates: [], updates: [{}] });
        expect(plan.updates).toHaveLength(1);
        expectExactly(store, [poolOf(devices)]);
      }),
      { numRuns: inputs(100) },
    );
  });
});
