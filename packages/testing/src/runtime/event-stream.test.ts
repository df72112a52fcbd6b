import { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { FakeClock } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type EventFaults, SimulatedRuntime } from "../index.ts";
import { eventually } from "../until.ts";
import { EventStream } from "./event-stream.ts";
import type { SimulatedEvent } from "./model.ts";
import { seededRandom } from "./seeded-random.ts";
import { simulations } from "./testing/serve.ts";

const { serve, end } = simulations();
afterEach(end);

const pod = { uid: "u1", name: "p1", namespace: "default" };
const eventOf = (number: number): SimulatedEvent => ({
  id: `c${number}`,
  type: ContainerEventType.CONTAINER_STARTED_EVENT,
  at: BigInt(number),
  pod,
  sandbox: undefined,
  container: undefined,
});

/** A stream and what was read from it, with the time of each. */
function listen(faults: EventFaults, seed = 1) {
  const clock = new FakeClock();
  const stream = new EventStream({ clock, faults: () => faults, random: seededRandom(seed) });
  const read: { number: number; at: number }[] = [];
  const reading = (async () => {
    for await (const { createdAt } of stream.read())
      read.push({ number: Number(createdAt), at: clock.monotonic() });
  })();
  return { clock, stream, read, reading, numbers: () => read.map(({ number }) => number) };
}

describe("EventStream", () => {
  it("keeps the order whatever is lost and doubled, and displaces by one at most what is reordered", async () => {
    const share = fc.constantFrom(0, 0.2, 0.5, 1);
    await fc.assert(
      fc.asyncProperty(
        fc.record({ lost: share, doubled: share, reordered: share }),
        fc.integer(),
        fc.integer({ min: 0, max: 40 }),
        async (faults, seed, count) => {
          const { clock, stream, numbers } = listen(faults, seed);
          for (let number = 0; number < count; number++) stream.push(eventOf(number));
          await clock.step(100);
          const seen = numbers();
          const distinct = [...new Set(seen)];
          if (faults.lost === 0) expect(distinct.sort((a, b) => a - b)).toEqual([...Array(count).keys()]);
          if (faults.lost === 1) expect(seen).toEqual([]);
          if (faults.doubled === 0) expect(seen).toHaveLength(distinct.length);
          if (faults.doubled === 1) expect(seen).toHaveLength(2 * distinct.length);
          if (faults.reordered === 0) expect(seen).toEqual(seen.toSorted((a, b) => a - b));
          // None is overtaken by more than one other.
          for (const number of new Set(seen)) {
            const before = new Set(seen.slice(0, seen.lastIndexOf(number)).filter((other) => other > number));
            expect(before.size).toBeLessThanOrEqual(1);
          }
          stream.end();
          await clock.step(0);
          expect(clock.timers).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("delays each event by as much, so that they keep their distances", async () => {
    const { clock, stream, read } = listen({ delayMs: 500 });
    for (let number = 0; number < 3; number++) {
      stream.push(eventOf(number));
      await clock.step(10);
    }
    await clock.step(1_000);
    expect(read).toEqual([
      { number: 0, at: 500 },
      { number: 1, at: 510 },
      { number: 2, at: 520 },
    ]);
  });

  it("ends at once while events are delayed", async () => {
    const { clock, stream, read, reading } = listen({ delayMs: 500 });
    stream.push(eventOf(0));
    await clock.step(10);
    stream.end();
    await reading;
    expect(read).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it("keeps 1,000 for who does not read, and counts what it drops", async () => {
    const clock = new FakeClock();
    const stream = new EventStream({ clock, faults: () => ({}), random: seededRandom(1) });
    for (let number = 0; number < 1_200; number++) stream.push(eventOf(number));
    expect(stream.dropped).toBe(200);
    const first = await stream.read().next();
    expect(first.value).toMatchObject({ containerId: "c0" });
  });
});

describe("GetContainerEvents", () => {
  it("sends every listener all of it, in order, with the sandbox as it was", async () => {
    const { runtime, cri, bare } = await serve();
    const listeners = [0, 1, 2].map(() => {
      const seen: string[] = [];
      const stop = new AbortController();
      const reading = (async () => {
        for await (const event of bare.getContainerEvents({}, { signal: stop.signal }))
          seen.push(
            `${event.containerEventType} ${event.containerId} ${event.podSandboxStatus?.state ?? "removed"}`,
          );
      })().catch(() => {});
      return { seen, stop, reading };
    });
    await eventually(() => expect(cri.listeners).toBe(3));
    const sandbox = runtime.runSandbox(pod);
    const id = runtime.runContainer(sandbox, { name: "app" });
    runtime.removeSandbox(sandbox);
    const [created, started, halted, deleted] = [0, 1, 2, 3];
    const [ready, notReady] = [0, 1];
    const expected = [
      `${created} ${sandbox} ${ready}`,
      `${started} ${sandbox} ${ready}`,
      `${created} ${id} ${ready}`,
      `${started} ${id} ${ready}`,
      `${halted} ${id} ${ready}`,
      `${halted} ${sandbox} ${notReady}`,
      `${deleted} ${id} ${notReady}`,
      `${deleted} ${sandbox} removed`,
    ];
    for (const { seen } of listeners) await eventually(() => expect(seen).toEqual(expected));
    for (const { stop, reading } of listeners) {
      stop.abort();
      await reading;
    }
    await eventually(() => expect(cri.listeners).toBe(0));
    expect(cri.droppedEvents).toBe(0);
  });

  it("forgets a listener that went while its call was delayed", async () => {
    const clock = new FakeClock();
    const runtime = new SimulatedRuntime({ clock });
    const asked = vi.fn();
    const { cri, bare } = await serve({
      runtime,
      clock,
      faults: ({ method }) => {
        asked(method);
        return { delayMs: 100 };
      },
    });
    const stop = new AbortController();
    const reading = (async () => {
      for await (const _ of bare.getContainerEvents({}, { signal: stop.signal }));
    })().catch(() => "refused");
    await eventually(() => expect(asked).toHaveBeenCalledWith("GetContainerEvents"));
    stop.abort();
    expect(await reading).toBe("refused");
    // The server learns of it a moment later; another call on the same connection is behind that news.
    const version = bare.version({});
    await eventually(() => expect(asked).toHaveBeenCalledWith("Version"));
    await clock.step(100);
    await version;
    expect(cri.listeners).toBe(0);
  });
});
