import { eventually } from "@nodekeeper/testing/until";
import { afterEach, expect, it } from "vitest";
import { devicesIn, setUp, specOf, tearDown } from "../testing/device-cluster.ts";

afterEach(tearDown);

it("writes the first slice of a large pool alone, and the others once the message is read", async () => {
  const before: number[] = [];
  const { startDriver, devices, slices, writes, server } = await setUp({
    admit: () => void before.push(server.store.list("resourceslices.resource.k8s.io").length),
  });
  await startDriver("gpu.example.com", 2_000);
  await eventually(() => expect(devices()).toHaveLength(2_000));
  // The second write starts after the first is stored; the others are concurrent.
  expect(before.slice(0, 2)).toEqual([0, 1]);
  expect(devicesIn(writes[0]!)).toContain("device-0");
  expect(writes).toHaveLength(16);
  expect(slices().map((slice) => specOf(slice).pool)).toEqual(
    Array.from({ length: 16 }, () => ({ name: "worker-1", generation: 1, resourceSliceCount: 16 })),
  );
});

it("publishes all devices if the first slice could not be written, which are known before", async () => {
  let isDown = true;
  const { startDriver, devices, sync, writes } = await setUp({
    admit: () => {
      const fault = isDown ? { status: 503, body: { kind: "Status", message: "down" } } : undefined;
      isDown = false;
      return fault;
    },
  });
  let known = 0;
  sync.onDevicesKnown(() => known++);
  await startDriver("gpu.example.com", 2_000);
  await eventually(() => expect(devices()).toHaveLength(2_000));
  expect(writes.length).toBeGreaterThan(16);
  expect(known).toBe(1);
});
