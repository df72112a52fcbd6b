import { join } from "node:path";
import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { Host } from "./host.ts";
import { readingValue } from "./reading.ts";

const fixtures = join(import.meta.dirname, "../../../../test/fixtures/host");

it.each(["one-socket-v2", "two-sockets-v1"])("a sample of %s has what the readings have", async (machine) => {
  const host = new Host({ root: join(fixtures, machine), clock: new FakeClock() });
  expect(host.sample().nodeMemory()).toBeUndefined();
  const nodes = readingValue(await host.nodeMemory());
  const sample = host.sample();
  expect(nodes).toBeDefined();
  // The page size is known after the reading.
  expect(sample.nodeMemory()).toEqual(nodes);
  expect(sample.memory()).toEqual(readingValue(await host.memory()));
  expect(sample.pids()).toEqual(readingValue(await host.pids()));
  for (const resource of ["memory", "cpu", "io"] as const) {
    expect(sample.pressure(resource)).toEqual(readingValue(await host.pressure(resource)));
  }
});

it("a sample of a machine that reports nothing has nothing", () => {
  const sample = new Host({ root: "/no/such/place", clock: new FakeClock() }).sample();
  expect([sample.memory(), sample.nodeMemory(), sample.pids(), sample.pressure("memory")]).toEqual(
    Array(4).fill(undefined),
  );
});

it("a sample of this machine has its memory", async () => {
  const host = new Host();
  const nodes = readingValue(await host.nodeMemory());
  const sample = host.sample();
  expect(sample.memory()?.totalBytes).toBeGreaterThan(0);
  // Values change; the nodes and their sizes do not.
  expect(sample.nodeMemory()?.map(({ id, totalBytes }) => [id, totalBytes])).toEqual(
    nodes?.map(({ id, totalBytes }) => [id, totalBytes]),
  );
});
