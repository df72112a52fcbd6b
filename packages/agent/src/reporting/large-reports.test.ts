import { FakeClock, LoopTurns, type Steps } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { parseContent, parsingContent } from "./content.ts";
import { type Endpoint, newEndpoint } from "./endpoint.ts";
import type { Json } from "./json.ts";
import { kindPolicies } from "./kinds.ts";
import { mergingObject } from "./merge.ts";
import { Refresh } from "./refresh.ts";
import { contentOf, field, message } from "./testing/contents.ts";

const policies = kindPolicies([]);
const cnr = "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource";

/** Returns the number of steps, excluding the end of the last one. */
function countSteps(steps: Steps<unknown>): number {
  for (let count = 0; ; count++) if (steps.next().done) return count;
}

const zones = (count: number, name = (at: number) => `zone-${at}`) =>
  Array.from({ length: count }, (_, at) => ({ name: name(at), type: "Numa", attributes: [] }));

describe("a large report is worked on in steps, each of a thousand values at most", () => {
  const shapes: Record<string, Json> = {
    "a list of numbers": Array.from({ length: 200_000 }, (_, at) => at % 10),
    "objects in objects": Object.fromEntries(
      Array.from({ length: 100 }, (_, at) => [`k${at}`, zones(200)]),
    ) as Json,
    "a list with keys": zones(8_000),
  };

  it.each(Object.entries(shapes))("%s", (_, value) => {
    const report = message([
      field("status", "topologyZone2", value),
      field("status", "topologyZone", zones(8_000)),
    ]);
    const values = countValues(value);
    expect(countSteps(parsingContent(report, policies))).toBeGreaterThanOrEqual(values / 1_000);
  });

  it("while it is merged with what another plugin reports of the same", () => {
    const contents = new Map([
      ["a", contentOf(message([field("status", "topologyZone", zones(8_000))]))],
      ["b", contentOf(message([field("status", "topologyZone", zones(8_000))]))],
    ]);
    // Each item counts with its three members.
    expect(countSteps(mergingObject(cnr, contents))).toBeGreaterThanOrEqual(32);
  });
});

describe("what would take too long is refused before it is done", () => {
  it("one object with very many members", () => {
    const members = Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`k${at}`, 1]));
    const { fields, problems } = contentOf(message([field("status", "a", { b: [members] })]));
    expect(fields).toEqual([]);
    expect(problems[0]?.message).toContain("more than 20000 members at b[0]");
  });

  it("a list that names one item again and again, each time with more in it", () => {
    const items = Array.from({ length: 20_000 }, (_, at) => ({ name: "x", type: "Numa", [`k${at}`]: 1 }));
    const { fields, problems } = contentOf(message([field("status", "topologyZone", items)]));
    expect(fields).toEqual([]);
    expect(problems[0]?.message).toContain("more than 100000 to merge");
  });
});

describe("while a large report is read", () => {
  const setUp = (during: (endpoint: Endpoint) => void = () => {}) => {
    const clock = new FakeClock();
    const turns = new LoopTurns(clock);
    const read: string[] = [];
    const refresh = new Refresh({
      clock,
      turns,
      read: function* (endpoint) {
        const steps = parsingContent(endpoint.message as never, policies);
        const first = steps.next();
        yield;
        during(endpoint);
        Object.assign(endpoint, { content: first.done ? first.value : yield* steps });
        read.push(endpoint.name);
      },
      onChange: () => {},
    });
    const add = (name: string, value: Json): Endpoint => {
      const endpoint = newEndpoint(name, false, 0);
      endpoint.message = message([field("status", "topologyZone", value)]);
      refresh.add(endpoint);
      return endpoint;
    };
    return { clock, refresh, read, add };
  };

  it("small ones of other plugins are not held up, and large ones come one after another", async () => {
    const { clock, refresh, read, add } = setUp();
    add("large", zones(10_000));
    add("larger", zones(12_000));
    const stepping = clock.step(100);
    add("small", zones(1));
    refresh.now();
    expect(read).toEqual(["small"]);
    await stepping;
    for (let turn = 0; read.length < 3 && turn < 10_000; turn++) await new Promise(setImmediate);
    expect(read).toEqual(["small", "large", "larger"]);
  });

  it("a small one of the same plugin that follows it is read after it", async () => {
    const small = message([field("status", "topologyZone", zones(1))]);
    const { clock, refresh, read, add } = setUp((endpoint) => {
      if (endpoint.message === small) return;
      Object.assign(endpoint, { message: small });
      refresh.add(endpoint);
      refresh.now();
      expect(read).toEqual([]);
    });
    const plugin = add("changing", zones(10_000));
    for (let turn = 0; read.length < 2 && turn < 1_000; turn++) await clock.step(20);
    expect(read).toEqual(["changing", "changing"]);
    expect(plugin.content?.fields).toEqual(contentOf(small).fields);
  });

  it("the others are read if its plugin is forgotten, without another change", async () => {
    const { clock, refresh, read, add } = setUp((endpoint) => {
      if (endpoint.name === "lost") refresh.forget(endpoint);
    });
    add("lost", zones(10_000));
    add("waiting", zones(10_000));
    for (let turn = 0; read.length < 1 && turn < 1_000; turn++) await clock.step(20);
    expect(read).toEqual(["waiting"]);
  });

  it("one that is forgotten is not read to its end, and at the end of all nothing is left unread", async () => {
    const { clock, refresh, read, add } = setUp();
    const lost = add("lost", zones(10_000));
    await clock.step(20);
    refresh.forget(lost);
    add("kept", zones(10_000));
    add("next", zones(10_000));
    await clock.step(20);
    refresh.close();
    expect(read.filter((name) => name !== "lost").sort()).toEqual(["kept", "next"]);
  });
});

describe("a report is read, however time passes between two looks at the clock", () => {
  /** Time advances by `creepMs` per reading. Timers fire `earlyMs` early, as in Node. */
  class CreepingClock extends FakeClock {
    readonly #creepMs: number;
    readonly #earlyMs: number;
    #crept = 0;

    constructor(creepMs: number, earlyMs: number) {
      super();
      this.#creepMs = creepMs;
      this.#earlyMs = earlyMs;
    }

    override monotonic(): number {
      this.#crept += this.#creepMs;
      return super.monotonic() + this.#crept;
    }

    override after(ms: number, callback: () => void) {
      return super.after(ms - this.#earlyMs, callback);
    }
  }

  it.each([0.3, 1, 3, 7].flatMap((creep) => [0, 0.5, 2, 5, 15].map((early) => [creep, early])))(
    "by %d ms, with timers that are %d ms early",
    async (creepMs, earlyMs) => {
      const clock = new CreepingClock(creepMs, earlyMs);
      let read: unknown;
      const refresh = new Refresh({
        clock,
        turns: new LoopTurns(clock),
        // biome-ignore lint/correctness/useYield: done in one step
        read: function* (endpoint) {
          read = endpoint.message;
        },
        onChange: () => {},
      });
      const endpoint = newEndpoint("changing", false, 0);
      const change = (to: number) => {
        endpoint.message = message([field("status", "x", to)]);
        refresh.add(endpoint);
      };
      // The second change of each pair arrives while its plugin is paused for the first, or afterwards.
      for (let betweenMs = 0; betweenMs < 150; betweenMs++) {
        change(1);
        await clock.step(betweenMs);
        change(2);
        await clock.step(1_000);
        expect(read).toBe(endpoint.message);
      }
    },
  );
});

function countValues(value: Json): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, member) => sum + countValues(member as Json), 1);
}

describe("parsing at once and in steps", () => {
  it("give the same", () => {
    const report = message([
      field(
        "status",
        "topologyZone",
        zones(100, (at) => `zone-${at % 40}`),
      ),
    ]);
    const steps = parsingContent(report, policies);
    let result = steps.next();
    while (!result.done) result = steps.next();
    expect(result.value).toEqual(parseContent(report, policies));
    expect(result.value.fields[0]?.value).toHaveLength(40);
  });
});
