import { NodekeeperError } from "@nodekeeper/api/errors";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { silentLogger } from "./log.ts";
import { Registry } from "./metrics.ts";
import { WorkQueue, type WorkQueueOptions } from "./work-queue.ts";
import { createWorkQueueMetrics } from "./work-queue-metrics.ts";

function newQueue(options: Partial<WorkQueueOptions> = {}) {
  const clock = new FakeClock();
  return { clock, queue: new WorkQueue({ name: "test", clock, log: silentLogger, ...options }) };
}

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const nothing = Symbol();
  return (
    (await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, nothing))])) === nothing
  );
}

describe("order and deduplication", () => {
  it("gives keys in the order they were added, each once", async () => {
    const { queue } = newQueue();
    for (const key of ["a", "b", "a", "c", "b"]) queue.add(key);
    expect(queue.length).toBe(3);
    expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(["a", "b", "c"]);
    expect(queue.length).toBe(0);
  });

  it("gives a key added while in work again only after done", async () => {
    const { queue } = newQueue();
    queue.add("a");
    await queue.get();
    queue.add("a");
    queue.add("a");
    const next = queue.get();
    expect(await isPending(next)).toBe(true);
    queue.done("a");
    expect(await next).toBe("a");
    queue.done("a");
    expect(queue.length).toBe(0);
  });

  it("hands a key to a waiting getter, one for each", async () => {
    const { queue } = newQueue();
    const getters = [queue.get(), queue.get()];
    queue.add("a");
    queue.add("b");
    expect(await Promise.all(getters)).toEqual(["a", "b"]);
  });

  it("ignores done for a key that is not in work", async () => {
    const { queue } = newQueue();
    queue.add("a");
    queue.done("a");
    queue.done("never seen");
    expect(await queue.get()).toBe("a");
  });
});

describe("delays", () => {
  it("adds after a delay, the earliest of several", async () => {
    const { clock, queue } = newQueue();
    queue.addAfter("a", 100);
    queue.addAfter("a", 50);
    queue.addAfter("a", 200);
    expect(clock.timers).toBe(1);
    await clock.step(49);
    expect(queue.length).toBe(0);
    await clock.step(1);
    expect(queue.length).toBe(1);
    await clock.step(1_000);
    expect(queue.length).toBe(1);
  });

  it("adds at once for no delay", () => {
    const { queue } = newQueue();
    queue.addAfter("a", 0);
    queue.addAfter("b", -1);
    expect(queue.length).toBe(2);
  });

  it("doubles each key's backoff up to the maximum, and forgets", () => {
    const { queue } = newQueue({ backoff: { baseMs: 5, maxMs: 30 } });
    expect([1, 2, 3, 4, 5].map(() => queue.addRateLimited("a"))).toEqual([5, 10, 20, 30, 30]);
    expect(queue.addRateLimited("b")).toBe(5);
    expect(queue.requeues("a")).toBe(5);
    queue.forget("a");
    expect(queue.requeues("a")).toBe(0);
    expect(queue.addRateLimited("a")).toBe(5);
  });

  it("has client-go's delays by default", () => {
    const { queue } = newQueue();
    const delays = Array.from({ length: 20 }, () => queue.addRateLimited("a"));
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(1_000_000);
  });
});

describe("bounds", () => {
  it("refuses one key too many, whatever state the others are in", async () => {
    const { clock, queue } = newQueue({ maxKeys: 3 });
    queue.add("in work");
    await queue.get();
    queue.add("queued");
    queue.addAfter("waiting", 10);
    const exhausted = expect.objectContaining({ code: "exhausted" });
    expect(() => queue.add("more")).toThrow(exhausted);
    expect(() => queue.addAfter("more", 5)).toThrow(exhausted);
    expect(() => queue.addRateLimited("more")).toThrow(exhausted);
    for (const key of ["in work", "queued", "waiting"]) queue.add(key);
    await clock.step(10);
    queue.done("in work");
    expect(queue.length).toBe(3);
    expect([await queue.get(), await queue.get()]).toEqual(["queued", "waiting"]);
    queue.done("queued");
    queue.add("more");
  });

  it("remembers backoffs of no more keys than it holds", async () => {
    const { clock, queue } = newQueue({ maxKeys: 2 });
    for (const key of ["a", "b", "c"]) {
      queue.addRateLimited(key);
      await clock.step(5);
      queue.done((await queue.get())!);
    }
    expect(["a", "b", "c"].map((key) => queue.requeues(key))).toEqual([0, 1, 1]);
  });
});

describe("run", () => {
  it("retries what throws with backoff, logs it, and forgets after a success", async () => {
    const warn = vi.fn();
    const { clock, queue } = newQueue({ log: { ...silentLogger, warn } as never });
    const tried: number[] = [];
    const controller = new AbortController();
    const running = queue.run(controller.signal, 2, async (key) => {
      tried.push(clock.monotonic());
      if (tried.length < 4) throw new NodekeeperError("unavailable", `${key} is unavailable`);
    });
    queue.add("a");
    await clock.step(1_000);
    expect(tried).toEqual([0, 5, 15, 35]);
    expect(queue.requeues("a")).toBe(0);
    expect(warn).toHaveBeenCalledTimes(3);
    expect(warn.mock.calls[1]?.[0]).toMatchObject({ queue: "test", key: "a", failures: 2, retryInMs: 10 });
    controller.abort();
    await running;
  });

  it("waits as long as the error asks", async () => {
    const { clock, queue } = newQueue();
    const tried: number[] = [];
    const controller = new AbortController();
    const running = queue.run(controller.signal, 1, async () => {
      tried.push(clock.monotonic());
      if (tried.length === 1) throw new NodekeeperError("throttled", "later", { retryAfterMs: 3_000 });
    });
    queue.add("a");
    await clock.step(3_004);
    expect(tried).toEqual([0]);
    await clock.step(1);
    expect(tried).toEqual([0, 3_005]);
    controller.abort();
    await running;
  });

  it("on abort drops what is queued, waits for work that has started, and leaves no timer", async () => {
    const { clock, queue } = newQueue();
    const controller = new AbortController();
    const handled: string[] = [];
    let finish = () => {};
    let hasEnded = false;
    const running = queue
      .run(controller.signal, 1, async (key) => {
        handled.push(key);
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      })
      .then(() => {
        hasEnded = true;
      });
    for (const key of ["a", "b"]) queue.add(key);
    queue.addAfter("c", 10);
    await clock.step(0);
    queue.add("a");
    controller.abort();
    await clock.step(100);
    expect(hasEnded).toBe(false);
    finish();
    await running;
    expect(handled).toEqual(["a"]);
    expect(clock.timers).toBe(0);
    queue.add("late");
    expect(queue.length).toBe(0);
  });

  it("does not retry what fails because it was aborted", async () => {
    const warn = vi.fn();
    const { clock, queue } = newQueue({ log: { ...silentLogger, warn } as never });
    const controller = new AbortController();
    const running = queue.run(controller.signal, 1, (_, signal) => clock.sleep(1_000, signal));
    queue.add("a");
    await clock.step(1);
    controller.abort(new Error("stop"));
    await running;
    expect(warn).not.toHaveBeenCalled();
    expect(clock.timers).toBe(0);
  });

  it("ends at once when aborted before", async () => {
    const { queue } = newQueue();
    queue.add("a");
    await queue.run(AbortSignal.abort(), 2, () => expect.fail("nothing should run"));
  });
});

describe("random interleavings", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("add" as const), key: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({
      do: fc.constant("addAfter" as const),
      key: fc.constantFrom("a", "b", "c", "d"),
      ms: fc.integer({ min: 0, max: 30 }),
    }),
    fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 15 }) }),
  );
  // Duration and outcome of each piece of work.
  const work = fc.array(fc.tuple(fc.integer({ min: 0, max: 25 }), fc.boolean()), {
    minLength: 1,
    maxLength: 12,
  });

  it("never works on a key twice at once, and works on each after its last add", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        work,
        fc.integer({ min: 1, max: 3 }),
        async (steps, works, workers) => {
          const { clock, queue } = newQueue({ backoff: { baseMs: 5, maxMs: 50 } });
          const inWork = new Set<string>();
          const lastStarted = new Map<string, number>();
          const lastAdded = new Map<string, number>();
          let order = 0;
          let started = 0;
          const controller = new AbortController();
          const running = queue.run(controller.signal, workers, async (key) => {
            expect(inWork.has(key)).toBe(false);
            expect(inWork.size).toBeLessThan(workers);
            inWork.add(key);
            lastStarted.set(key, order++);
            const [ms, isFailing] = works[started++ % works.length]!;
            try {
              await clock.sleep(ms);
            } finally {
              inWork.delete(key);
            }
            if (isFailing && started < 40) throw new Error("fails");
          });
          for (const each of steps) {
            if (each.do === "pass") {
              await clock.step(each.ms);
              continue;
            }
            if (each.do === "add") queue.add(each.key);
            else queue.addAfter(each.key, each.ms);
            lastAdded.set(each.key, order++);
          }
          await clock.step(20_000);
          for (const [key, added] of lastAdded) expect(lastStarted.get(key)).toBeGreaterThan(added);
          expect([queue.length, clock.timers, inWork.size]).toEqual([0, 0, 0]);
          controller.abort();
          await running;
        },
      ),
      { numRuns: 150 },
    );
  }, 20_000);

  it("holds the same keys as a simple model of client-go's queue", async () => {
    const operation = fc.record({
      do: fc.constantFrom("add", "get", "done"),
      key: fc.constantFrom("a", "b", "c"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
        const { queue } = newQueue();
        const model = { queue: [] as string[], dirty: new Set<string>(), processing: new Set<string>() };
        for (const { do: what, key } of operations) {
          if (what === "add") {
            queue.add(key);
            if (!model.dirty.has(key) && !model.processing.has(key)) model.queue.push(key);
            model.dirty.add(key);
          } else if (what === "get" && model.queue.length > 0) {
            const expected = model.queue.shift()!;
            model.dirty.delete(expected);
            model.processing.add(expected);
            expect(await queue.get()).toBe(expected);
          } else if (what === "done") {
            queue.done(key);
            if (model.processing.delete(key) && model.dirty.has(key)) model.queue.push(key);
          }
          expect(queue.length).toBe(model.queue.length);
        }
      }),
    );
  });
});

describe("what is no longer needed", () => {
  it("is dropped from the queue, also if it was added again while in work", async () => {
    const { queue } = newQueue();
    for (const key of ["a", "b", "c"]) queue.add(key);
    expect([queue.drop("b"), queue.drop("b"), queue.length]).toEqual([true, false, 2]);
    expect(await queue.get()).toBe("a");
    queue.add("a");
    expect(queue.drop("a")).toBe(true);
    queue.done("a");
    expect(await queue.get()).toBe("c");
    expect(queue.length).toBe(0);
  });

  it("is cancelled before its delay has passed", async () => {
    const { clock, queue } = newQueue();
    queue.addAfter("a", 1_000);
    expect(queue.isWaiting("a")).toBe(true);
    queue.cancel("a");
    expect(queue.isWaiting("a")).toBe(false);
    await clock.step(2_000);
    expect(queue.length).toBe(0);
  });
});

describe("metrics", () => {
  it("exposes depth, adds, retries, refusals and times, for each queue by name", async () => {
    const registry = new Registry();
    const metrics = createWorkQueueMetrics(registry);
    const { clock, queue } = newQueue({ metrics, maxKeys: 2 });
    const value = async (name: string) => {
      const metric = await registry.getSingleMetric(`nodekeeper_workqueue_${name}`)!.get();
      const last = metric.values.find(
        (each) => !("metricName" in each) || String(each.metricName).endsWith("_sum"),
      );
      return last?.value;
    };
    queue.add("a");
    queue.add("a");
    queue.add("b");
    expect(() => queue.add("c")).toThrow();
    expect([await value("depth"), await value("adds_total"), await value("refused_total")]).toEqual([
      2, 2, 1,
    ]);
    await clock.step(2_000);
    await queue.get();
    await queue.get();
    expect([await value("depth"), await value("queue_duration_seconds")]).toEqual([0, 4]);
    await clock.step(3_000);
    expect(await value("unfinished_work_seconds")).toBe(6);
    expect(await value("longest_running_processor_seconds")).toBe(3);
    queue.done("a");
    queue.done("b");
    expect(await value("work_duration_seconds")).toBe(6);
    expect(await value("unfinished_work_seconds")).toBe(0);
    queue.addRateLimited("a");
    expect(await value("retries_total")).toBe(1);
    expect((await registry.getSingleMetric("nodekeeper_workqueue_depth")!.get()).values[0]?.labels).toEqual({
      name: "test",
    });
  });
});
