import { expect, it } from "vitest";
import { Limiter } from "./limiter.ts";

const never = new AbortController().signal;

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: resolve };
}

it("runs no more at once than its limit, in order of arrival", async () => {
  const limiter = new Limiter(2);
  const gates = Array.from({ length: 4 }, gate);
  const begun: number[] = [];
  const all = gates.map(({ promise }, at) =>
    limiter.run(never, async () => {
      begun.push(at);
      await promise;
    }),
  );
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  gates[1]!.open();
  await all[1];
  expect(begun).toEqual([0, 1, 2]);
  for (const { open } of gates) open();
  await Promise.all(all);
  expect(begun).toEqual([0, 1, 2, 3]);
});

it("lets go of work whose signal aborts while all places hang, and passes its turn on", async () => {
  const limiter = new Limiter(1);
  const hung = gate();
  const first = limiter.run(never, () => hung.promise);
  const stop = new AbortController();
  const given = limiter.run(stop.signal, async () => "never begun");
  const next = limiter.run(never, async () => "next");
  stop.abort(new Error("too long"));
  await expect(given).rejects.toThrow("too long");
  hung.open();
  await first;
  expect(await next).toBe("next");
});

it("frees the place of work that fails", async () => {
  const limiter = new Limiter(1);
  await expect(limiter.run(never, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await limiter.run(never, async () => "next")).toBe("next");
});
