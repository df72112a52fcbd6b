import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, RecentWork } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { Host, HostReadings, PodReadings, type Reading, readingValue } from "./index.ts";

const never = new AbortController().signal;

function counting() {
  const clock = new FakeClock(0);
  const gates: ((reading: Reading<number>) => void)[] = [];
  const shared = new RecentWork<Reading<number>>(
    clock,
    () => 1_000,
    () => new Promise((resolve) => gates.push(resolve)),
  );
  const answer = (value: number) =>
    gates.at(-1)!({ state: "read", at: clock.monotonic(), value, problems: [] });
  return { clock, gates, shared, answer };
}

it("callers at one time share one read", async () => {
  const { gates, shared, answer } = counting();
  const both = Promise.all([shared.get(never), shared.get(never)]);
  expect(gates).toHaveLength(1);
  answer(7);
  expect((await both).map(readingValue)).toEqual([7, 7]);
});

it("a reading is handed out again until it is too old, counted from when it started", async () => {
  const { clock, gates, shared, answer } = counting();
  const first = shared.get(never);
  await clock.step(900);
  answer(7);
  await first;
  await clock.step(100);
  expect(readingValue(await shared.get(never))).toBe(7);
  await clock.step(1);
  const second = shared.get(never);
  expect(gates).toHaveLength(2);
  answer(8);
  expect(readingValue(await second)).toBe(8);
});

it("a caller that aborts stops waiting alone", async () => {
  const { shared, answer } = counting();
  const reason = new Error("enough");
  const controller = new AbortController();
  const aborted = shared.get(controller.signal);
  const other = shared.get(never);
  controller.abort(reason);
  await expect(aborted).rejects.toBe(reason);
  await expect(shared.get(AbortSignal.abort(reason))).rejects.toBe(reason);
  answer(7);
  expect(readingValue(await other)).toBe(7);
});

it("the use of CPUs needs two readings, and is of the time between them", async () => {
  const root = await mkdtemp(join(tmpdir(), "host-"));
  try {
    await cp(join(import.meta.dirname, "../../../../test/fixtures/host/one-socket-v2"), root, {
      recursive: true,
    });
    const clock = new FakeClock(0);
    const host = new Host({ root, clock });
    const readings = new HostReadings({
      host,
      pods: new PodReadings({ root, clock }),
      clock,
      maxAgeMs: () => 1_000,
    });
    expect(await readings.cpu(never)).toMatchObject({
      message: "CPU usage needs two readings; this is the first",
    });
    await clock.step(5_000);
    const cpus = Array.from({ length: 8 }, (_, cpu) => `cpu${cpu} 0 0 0 0`).join("\n");
    await writeFile(join(root, "proc/stat"), `cpu  2000 100 500 11000 300 0 60 40 20 0\n${cpus}\n`);
    expect(readingValue(await readings.cpu(never))).toEqual({ share: 0.25, cpus: 8 });
    await clock.step(5_000);
    expect(await readings.cpu(never)).toMatchObject({
      message: "the CPU counters decreased or did not advance since the last reading",
    });
    expect(readingValue(await readings.memory(never))?.watermarkScaleFactor).toBe(10);
    expect((await readings.filesystem("/proc", never)).state).toBe("read");
    expect(readingValue(await readings.pressure("io", never))?.some.avg10).toBe(3.1);
    expect(readingValue(await readings.cgroupPressure("/kubepods.slice", never))?.some.avg10).toBe(9.5);
    expect(readingValue(await readings.pods(never))?.pods.size).toBe(3);
  } finally {
    await rm(root, { recursive: true });
  }
});
