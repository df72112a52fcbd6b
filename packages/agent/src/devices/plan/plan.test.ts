import { describe, expect, test } from "vitest";
import { type Device, encodeSlice, planSlices, storedSlice } from "../index.ts";
import {
  checked,
  driver,
  namesUpTo,
  nodeName,
  poolOf,
  SliceStore,
  wholePlan,
} from "../testing/slice-store.ts";

function sizes(store: SliceStore): number[] {
  return store.stored.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ devices }) => devices.length);
}

function taint(name: string, effect = "NoSchedule"): Device {
  return { name, taints: [{ key: "unhealthy", effect }] };
}

describe("planSlices", () => {
  test.each([
    [0, [0]],
    [128, [128]],
    [129, [64, 65]],
    [256, [128, 128]],
    [1_000, [125, 125, 125, 125, 125, 125, 125, 125]],
  ])("%i devices need as few slices as there can be, evenly filled", (count, expected) => {
    const store = new SliceStore();
    store.sync(checked(poolOf(namesUpTo(count))));
    expect(sizes(store)).toEqual(expected);
  });

  test("with a taint anywhere, slices hold 64, and stay so when it goes", () => {
    const store = new SliceStore();
    store.sync(checked(poolOf([...namesUpTo(200), taint("bad")])));
    expect(sizes(store)).toEqual([50, 50, 50, 51]);
    const plan = store.sync(checked(poolOf([...namesUpTo(200), "bad"])));
    expect(plan.updates).toHaveLength(1);
    expect(sizes(store)).toEqual([50, 50, 50, 51]);
  });

  test("the first generation is 1; it stays for one changed slice and rises for two", () => {
    const store = new SliceStore();
    const devices: Device[] = namesUpTo(300).map((name) => ({ name }));
    store.sync(checked(poolOf(devices)));
    expect(store.stored.map(({ pool }) => pool)).toEqual(
      Array(3).fill({ name: nodeName, generation: 1, resourceSliceCount: 3 }),
    );
    devices[5] = { name: "device-5", attributes: { a: { int: 1 } } };
    expect(store.sync(checked(poolOf(devices))).updates.map(({ spec }) => spec.pool.generation)).toEqual([1]);
    devices[6] = { name: "device-6", attributes: { a: { int: 1 } } };
    devices[250] = { name: "device-250", attributes: { a: { int: 1 } } };
    expect(store.sync(checked(poolOf(devices))).updates.map(({ spec }) => spec.pool.generation)).toEqual([
      2, 2, 2,
    ]);
  });

  test("taints that change in several slices leave the generation, for each speaks of its own device", () => {
    const store = new SliceStore();
    const names = namesUpTo(300);
    store.sync(checked(poolOf([taint("first"), ...names])));
    const plan = store.sync(
      checked(poolOf(["first", taint("device-0"), ...names.slice(1, -1), taint("device-299")])),
    );
    expect(plan.updates.map(({ spec }) => spec.pool.generation)).toEqual([1, 1]);
  });

  test("a taint that stays keeps its time, wherever its device goes", () => {
    const store = new SliceStore();
    store.sync(checked(poolOf([taint("bad"), "good"])));
    const since = store.stored[0]!.devices[0]!.taints;
    expect(since).toEqual([{ key: "unhealthy", effect: "NoSchedule", timeAdded: expect.any(String) }]);
    store.sync(checked(poolOf([...namesUpTo(200), taint("bad")])));
    expect(store.stored.flatMap(({ devices }) => devices).find(({ name }) => name === "bad")?.taints).toEqual(
      since,
    );
    store.sync(checked(poolOf([...namesUpTo(200), taint("bad", "NoExecute")])));
    expect(
      store.stored.flatMap(({ devices }) => devices).find(({ name }) => name === "bad")?.taints,
    ).not.toEqual(since);
  });

  test("an insertion and a removal in the middle touch one slice", () => {
    const store = new SliceStore();
    const names = namesUpTo(10_000);
    store.sync(checked(poolOf(names)));
    expect(store.objects.size).toBe(79);
    const inserted = names.toSpliced(5_000, 0, "new");
    expect(store.sync(checked(poolOf(inserted)))).toMatchObject({ deletes: [], creates: [], updates: [{}] });
    const removed = inserted.toSpliced(1_900, 40);
    expect(store.sync(checked(poolOf(removed))).updates.length).toBe(1);
    expect(store.stored.every(({ pool }) => pool.generation === 1)).toBe(true);
  });

  test("a half empty slice that another client deletes comes back, though its devices would fit elsewhere", () => {
    const store = new SliceStore();
    const names = namesUpTo(130);
    store.sync(checked(poolOf(names)));
    const fewer = checked(poolOf(names.filter((_, at) => at % 65 > 10)));
    store.sync(fewer);
    expect(sizes(store)).toEqual([54, 54]);
    const [victim] = store.objects.keys();
    store.objects.delete(victim!);
    const plan = store.plan(fewer);
    expect([plan.deletes, plan.updates, plan.creates.map(({ name }) => name)]).toEqual([[], [], [victim]]);
  });

  test("a pool that shrinks to a few devices is drawn together", () => {
    const store = new SliceStore();
    store.sync(checked(poolOf(namesUpTo(1_000))));
    store.sync(checked(poolOf(namesUpTo(1_000).filter((_, at) => at % 100 === 0))));
    expect(sizes(store)).toEqual([10]);
  });

  test("a pool that shrinks to less than half full slices is drawn together", () => {
    const store = new SliceStore();
    store.sync(checked(poolOf(namesUpTo(1_000))));
    store.sync(checked(poolOf(namesUpTo(1_000).filter((_, at) => at % 10 < 5))));
    expect(sizes(store)).toEqual([65, 60, 65, 60, 65, 60, 65, 60]);
    store.sync(checked(poolOf(namesUpTo(1_000).filter((_, at) => at % 10 < 3))));
    expect(sizes(store)).toEqual([100, 100, 100]);
  });

  test("a taint among new devices counts for the other new ones of its slice", () => {
    const store = new SliceStore();
    const names = namesUpTo(60);
    store.sync(checked(poolOf(names)));
    const late = Array.from({ length: 10 }, (_, at) => `late-${at}`);
    store.sync(
      checked(
        poolOf([...names.slice(0, 10), taint("bad"), ...names.slice(10, 40), ...late, ...names.slice(40)]),
      ),
    );
    expect(sizes(store)).toEqual([35, 36]);
  });

  test("quantities written another way are no change", () => {
    const store = new SliceStore();
    const pool = poolOf([{ name: "gpu", capacity: { memory: { value: "1Gi" } } }]);
    store.sync(checked(pool));
    expect(JSON.stringify([...store.objects.values()])).toContain("1024Mi");
    expect(store.plan(checked(pool))).toEqual({ deletes: [], updates: [], creates: [] });
  });

  test("counters have slices of their own, eight sets in each", () => {
    const store = new SliceStore();
    const sets = Array.from({ length: 9 }, (_, at) => ({
      name: `set-${at}`,
      counters: { a: { value: "1" } },
    }));
    const pool = { ...poolOf(["gpu"]), sharedCounters: sets };
    store.sync(checked(pool));
    expect(store.stored.map(({ counterSets, devices }) => [counterSets.length, devices.length])).toEqual([
      [8, 0],
      [1, 0],
      [0, 1],
    ]);
    expect(store.stored.map(({ pool: { resourceSliceCount } }) => resourceSliceCount)).toEqual([3, 3, 3]);
    expect(store.plan(checked(pool))).toEqual({ deletes: [], updates: [], creates: [] });
  });

  test("a pool that was removed loses its slices, the others keep theirs", () => {
    const store = new SliceStore();
    store.sync(checked(poolOf(["a"], "one"), poolOf(["b"], "two")));
    const plan = store.sync(checked(poolOf(["b"], "two")));
    expect(plan.deletes.map(({ pool }) => pool.name)).toEqual(["one"]);
    expect([plan.updates, plan.creates]).toEqual([[], []]);
  });

  test("slices of another publisher stay if they mean the same, whatever their names", () => {
    const stored = ["worker-1-gpu-b7x9k", "worker-1-gpu-c2m4p"].map((name, at) =>
      storedSlice(
        "v1",
        encodeSlice(
          "v1",
          { name },
          {
            driver,
            nodeName,
            pool: { name: nodeName, generation: 7, resourceSliceCount: 2 },
            devices: [{ name: `gpu-${at}` }, { name: `nic-${at}` }],
          },
        ),
      ),
    );
    const same = checked(poolOf(["gpu-0", "nic-0", "gpu-1", "nic-1"]));
    // Two devices of four: one slice would do, so they are drawn together in one with a name of ours.
    const plan = wholePlan(planSlices({ driver, nodeName, pools: same, stored }));
    expect(plan.deletes).toHaveLength(2);
    expect(plan.creates).toMatchObject([{ spec: { pool: { generation: 8, resourceSliceCount: 1 } } }]);
    const single = [{ ...stored[0]!, pool: { ...stored[0]!.pool, resourceSliceCount: 1 } }];
    expect(
      planSlices({ driver, nodeName, pools: checked(poolOf(["gpu-0", "nic-0"])), stored: single }),
    ).toEqual([]);
  });

  test.each([
    [3, 8, 9],
    [9, 8, 10],
    [8, 8, 9],
  ])(
    "another client's slices of generation %i, the agent's of %i: the pool rises to %i",
    (theirs, ours, next) => {
      const store = new SliceStore();
      const pools = checked(poolOf(namesUpTo(200)));
      store.sync(pools);
      const stored = store.stored.map((slice) => ({ ...slice, pool: { ...slice.pool, generation: ours } }));
      const foreign = { name: "theirs", metadata: { uid: "1" }, pool: nodeName, generation: theirs };
      const [plan] = planSlices({ driver, nodeName, pools, stored, foreign: [foreign] });
      expect(plan!.outdated).toEqual([foreign]);
      const written = plan!.writes.map(({ spec }) => spec.pool.generation);
      // Slices of an older generation are no trouble: they are deleted, and that is all.
      expect(written).toEqual(theirs < ours ? [] : [next, next]);
    },
  );

  test("a slice without our label or owner is written again as it is", () => {
    const store = new SliceStore();
    const pools = checked(poolOf(namesUpTo(200)));
    store.sync(pools);
    const [first, ...others] = store.stored;
    const stored = [{ ...first!, isMarked: false }, ...others];
    const [plan] = planSlices({ driver, nodeName, pools, stored });
    expect(plan).toMatchObject({
      rises: false,
      deletes: [],
      writes: [{ name: first!.name, isChanged: false }],
    });
  });
});
