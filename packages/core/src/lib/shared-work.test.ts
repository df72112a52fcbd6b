import { expect, it } from "vitest";
import { SharedWork } from "./shared-work.ts";

const never = new AbortController().signal;

function setUp() {
  const started: { signal: AbortSignal; end(value: number): void; fail(error: Error): void }[] = [];
  const work = new SharedWork<number>((signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    signal.addEventListener("abort", () => reject(signal.reason));
    started.push({ signal, end: resolve, fail: reject });
    return promise;
  });
  return { work, started };
}

it("is done once for all who ask meanwhile", async () => {
  const { work, started } = setUp();
  const both = Promise.all([work.join(never), work.join(never)]);
  started[0]!.end(1);
  expect(await both).toEqual([1, 1]);
  const next = work.join(never);
  started[1]!.end(2);
  expect(await next).toBe(2);
  expect(started).toHaveLength(2);
});

it("continues when one caller leaves, and ends when the last does", async () => {
  const { work, started } = setUp();
  const [one, other] = [new AbortController(), new AbortController()];
  const first = work.join(one.signal);
  const second = work.join(other.signal);
  one.abort(new Error("first leaves"));
  await expect(first).rejects.toThrow("first leaves");
  expect(started[0]!.signal.aborted).toBe(false);
  other.abort(new Error("second leaves"));
  await expect(second).rejects.toThrow("second leaves");
  expect(started[0]!.signal.aborted).toBe(true);
  const third = work.join(never);
  started[1]!.end(3);
  expect(await third).toBe(3);
});

it("fresh work begins after the call, also when the one before it fails", async () => {
  const { work, started } = setUp();
  const first = work.join(never);
  const fresh = work.fresh(never);
  expect(started).toHaveLength(1);
  started[0]!.fail(new Error("no"));
  await expect(first).rejects.toThrow("no");
  await new Promise((resolve) => setImmediate(resolve));
  started[1]!.end(2);
  expect(await fresh).toBe(2);
});

it("that outlives its callers continues when none waits, and serves the next", async () => {
  const started: ((value: number) => void)[] = [];
  const work = new SharedWork<number>(() => new Promise((resolve) => started.push(resolve)), {
    outlivesCallers: true,
  });
  const caller = new AbortController();
  const first = work.join(caller.signal);
  caller.abort(new Error("leaves"));
  await expect(first).rejects.toThrow("leaves");
  const second = work.join();
  started[0]!(1);
  expect(await second).toBe(1);
  expect(started).toHaveLength(1);
});

it("that no caller waits for may fail", async () => {
  const work = new SharedWork<number>(() => Promise.reject(new Error("no")), { outlivesCallers: true });
  const caller = new AbortController();
  const first = work.join(caller.signal);
  caller.abort(new Error("leaves"));
  await expect(first).rejects.toThrow("leaves");
  await expect(work.join()).rejects.toThrow("no");
});
