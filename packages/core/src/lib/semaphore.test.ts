import { expect, it } from "vitest";
import { Semaphore } from "./semaphore.ts";

const never = new AbortController().signal;

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: resolve };
}

it("runs no more at once than it has permits, in order of arrival", async () => {
  const semaphore = new Semaphore({ permits: 2 });
  const gates = Array.from({ length: 4 }, gate);
  const started: number[] = [];
  const all = gates.map(({ promise }, at) =>
    semaphore.run(never, async () => {
      started.push(at);
      await promise;
    }),
  );
  await Promise.resolve();
  expect(started).toEqual([0, 1]);
  gates[1]!.open();
  await all[1];
  expect(started).toEqual([0, 1, 2]);
  for (const { open } of gates) open();
  await Promise.all(all);
  expect(started).toEqual([0, 1, 2, 3]);
});

it("drops work whose signal aborts while all permits are taken, and passes its turn on", async () => {
  const semaphore = new Semaphore({ permits: 1 });
  const hung = gate();
  const first = semaphore.run(never, () => hung.promise);
  const stop = new AbortController();
  const given = semaphore.run(stop.signal, async () => "never started");
  const next = semaphore.run(never, async () => "next");
  stop.abort(new Error("too long"));
  await expect(given).rejects.toThrow("too long");
  hung.open();
  await first;
  expect(await next).toBe("next");
});

it("takes back the permit of work that fails", async () => {
  const semaphore = new Semaphore({ permits: 1 });
  await expect(semaphore.run(never, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await semaphore.run(never, async () => "next")).toBe("next");
});

it("starts waiting work in the order of its rank, and refuses what is too much to wait", async () => {
  const semaphore = new Semaphore({ permits: 1, maxWaiting: 2 });
  const first = gate();
  const started: string[] = [];
  const begin = (name: string, rank: number) => semaphore.run(never, () => void started.push(name), rank);
  const running = semaphore.run(never, () => first.promise);
  const waiting = [begin("later", 2), begin("sooner", 1)];
  await expect(begin("too much", 0)).rejects.toMatchObject({ code: "throttled" });
  expect(semaphore.waiting).toBe(2);
  first.open();
  await Promise.all([running, ...waiting]);
  expect(started).toEqual(["sooner", "later"]);
});

it("starts what waits when it is given more permits, and nothing beyond fewer", async () => {
  const semaphore = new Semaphore({ permits: 1 });
  const gates = [gate(), gate(), gate(), gate()];
  const started: number[] = [];
  const all = gates.map((one, at) =>
    semaphore.run(never, () => {
      started.push(at);
      return one.promise;
    }),
  );
  semaphore.resize(3);
  await Promise.resolve();
  expect([started, semaphore.running, semaphore.waiting]).toEqual([[0, 1, 2], 3, 1]);
  semaphore.resize(1);
  gates[0]!.open();
  gates[1]!.open();
  await Promise.all(all.slice(0, 2));
  expect([started, semaphore.running]).toEqual([[0, 1, 2], 1]);
  gates[2]!.open();
  await all[2];
  expect(started).toEqual([0, 1, 2, 3]);
  gates[3]!.open();
  await all[3];
});
