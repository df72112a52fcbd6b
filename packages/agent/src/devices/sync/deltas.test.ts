import { eventually } from "@nodekeeper/testing/until";
import { afterEach, expect, it } from "vitest";
import { setUp, specOf, tearDown } from "../testing/device-cluster.ts";

afterEach(tearDown);

const gpu = "gpu.example.com";
const serial = (name: string, value: number) => ({ name, attributes: { serial: { int: BigInt(value) } } });

it("a delta changes what it names, and one write carries it", async () => {
  const { driver, register, devices, slices, writes } = await setUp();
  const source = await driver(gpu);
  source.report(300);
  source.revision = 1n;
  await register(gpu, source);
  await eventually(() => expect(devices()).toHaveLength(300));
  const before = writes.length;
  source.change(1n, 2n, { upserts: [serial("device-9", 7)], removals: [] });
  await eventually(() => expect(JSON.stringify(slices())).toContain('"serial":{"int":7}'));
  expect(writes).toHaveLength(before + 1);
  source.change(2n, 3n, { upserts: [{ name: "new" }], removals: ["device-4"] });
  await eventually(() => expect(devices()).toContain("new"));
  await eventually(() => expect(devices()).not.toContain("device-4"));
  expect(devices()).toHaveLength(300);
  // New devices come last.
  const last = slices()
    .toSorted((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1))
    .at(-1)!;
  expect(specOf(last).devices?.at(-1)?.name).toBe("new");
});

it.each([
  ["of another revision", 41n],
  ["before any revision", 0n],
])("a delta %s starts the stream over, and nothing of it is published", async (_, base) => {
  const { driver, register, devices } = await setUp();
  const source = await driver(gpu);
  source.report(3);
  source.revision = base === 0n ? 0n : 1n;
  await register(gpu, source);
  await eventually(() => expect(devices()).toHaveLength(3));
  expect(source.watches).toBe(1);
  source.change(base, base + 1n, { upserts: [{ name: "lost" }], removals: [] });
  await eventually(() => expect(source.watches).toBe(2));
  // The stream that starts over has the whole state.
  await eventually(() => expect(devices()).toEqual(["device-0", "device-1", "device-2", "lost"]));
});

it("a delta of a pool that is not there fails the stream alone", async () => {
  const { driver, register, devices, sync } = await setUp();
  const source = await driver(gpu);
  source.report(3);
  source.revision = 1n;
  await register(gpu, source);
  await eventually(() => expect(devices()).toHaveLength(3));
  source.change(1n, 2n, { name: "other", upserts: [{ name: "a" }], removals: [] });
  await eventually(() => expect(sync.status()[0]).toMatchObject({ state: "failing", error: /pool "other"/ }));
  expect(devices()).toHaveLength(3);
});
