import { FakeClock } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ObservedPod, observeJson } from "../eviction/index.ts";
import { never, testPod } from "../intree/eviction/testing/parts.ts";
import type { PodUsage } from "./fields.ts";
import { type PodRanking, rankPods } from "./rank-pods.ts";
import { policyOf } from "./testing/policies.ts";

const now = 1_700_000_000_000;

function ranking(
  rank: string,
  pods: readonly ObservedPod[],
  { filter = "true", usages = {} }: { filter?: string; usages?: Record<string, PodUsage> } = {},
): Promise<PodRanking> {
  const policy = policyOf(`name: a\ntype: hard\nwhen: true\npods: '${filter}'\nrank: ${rank}`);
  return rankPods(policy, pods, {
    usages: { value: new Map(Object.entries(usages)), at: 0 },
    clock: new FakeClock(now),
    cpuMs: () => 0,
    signal: never,
  });
}

function names({ ranked }: PodRanking): string[] {
  return ranked.map(({ pod }) => pod.pod.name);
}

const shop = [
  testPod("web", { priority: 100, labels: { app: "web" }, requests: [{ memory: "100", cpu: "500m" }] }),
  testPod("job", {
    qosLevel: "reclaimed_cores",
    labels: { app: "job" },
    annotations: { "example.com/keep": "no" },
  }),
  testPod("db", { priority: 900, requests: [{ memory: "1k" }, { memory: "1k" }] }),
];

describe("the filter", () => {
  it.each([
    ['pod.name == "web"', ["web"]],
    ['pod.namespace == "default"', ["db", "job", "web"]],
    ['"app" in pod.labels && pod.labels.app == "job"', ["job"]],
    ['"example.com/keep" in pod.annotationKeys', ["job"]],
    ['pod.qosLevel == "reclaimed_cores"', ["job"]],
    ['pod.qosClass == "BestEffort"', ["job"]],
    ["pod.priority >= 100", ["db", "web"]],
    ["pod.requests.memory > 0", ["db", "web"]],
    ["pod.requests.memory == 2000", ["db"]],
    ["pod.requests.cpu == 0.5", ["web"]],
    ["pod.usage.rss > 10", ["db"]],
    ['pod.ownerKind == ""', ["db", "job", "web"]],
  ])("%s takes %j", async (filter, expected) => {
    const usages = { db: { rss: 20 }, web: { rss: 5 }, job: { rss: 1 } };
    const result = await ranking("[1]", shop, { filter, usages });
    expect(names(result)).toEqual(expected);
    const left = result.excluded.map(({ kind, why }) => ({ kind, why }));
    expect(left).toEqual(
      Array(3 - expected.length).fill({ kind: "filtered", why: "excluded by the filter" }),
    );
  });

  it("by age and owner", async () => {
    const old = observeJson({
      metadata: {
        uid: "old",
        name: "old",
        namespace: "default",
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "ReplicaSet", name: "old", uid: "1", controller: true },
        ],
      },
      spec: { containers: [{ name: "app" }] },
      status: { startTime: new Date(now - 90_000).toISOString() },
    });
    const filter = 'pod.age == 90 && pod.ownerKind == "ReplicaSet"';
    expect(names(await ranking("[1]", [old], { filter }))).toEqual(["old"]);
    const future = { ...old, pod: { ...old.pod, startTime: now + 5_000 } };
    expect(names(await ranking("[1]", [future], { filter: "pod.age == 0" }))).toEqual(["old"]);
    const unborn = await ranking("[pod.age]", shop);
    expect(unborn.excluded.map(({ kind, why }) => [kind, why])).toEqual(
      Array(3).fill(["unknown", "pod.age is not known"]),
    );
  });
});

describe("the ranking", () => {
  it.each<[string, string[]]>([
    ["[pod.priority]", ["db", "web", "job"]],
    ["[-pod.priority]", ["job", "web", "db"]],
    ["['pod.priority > 0 ? 1 : 0', -pod.requests.memory]", ["web", "db", "job"]],
    ["[5]", ["db", "job", "web"]],
  ])("%s is %j", async (rank, expected) => {
    expect(names(await ranking(rank, shop))).toEqual(expected);
  });

  it("returns the values", async () => {
    const { ranked } = await ranking("[-pod.priority, pod.requests.memory]", shop);
    expect(ranked.map(({ values }) => values)).toEqual([
      [-0, 0],
      [-100, 100],
      [-900, 2000],
    ]);
  });

  it("leaves out pods that can't be ranked, and reports why", async () => {
    const usages = { web: { rss: 5 }, db: { rss: undefined } };
    const result = await ranking("[pod.usage.rss]", shop, { usages });
    expect(names(result)).toEqual(["web"]);
    expect(result.excluded.map(({ pod, kind, why }) => [pod.pod.name, kind, why])).toEqual([
      ["db", "unknown", "pod.usage.rss is not known"],
      ["job", "unknown", "pod.usage.rss is not known"],
    ]);
    const divided = await ranking("[1, pod.priority / pod.requests.memory]", shop);
    expect(names(divided)).toEqual(["web", "db"]);
    expect(divided.excluded[0]).toMatchObject({ kind: "unknown", why: "rank[1]: test.yaml:6:15: is NaN" });
    const labelled = await ranking("[1]", shop, { filter: 'pod.labels.app == "web"' });
    expect(labelled.excluded.map(({ why }) => why)).toEqual([
      "the filter: test.yaml:5:23: No such key: app",
      "excluded by the filter",
    ]);
  });

  it("takes no usage that was read long ago", async () => {
    const policy = policyOf("name: a\ntype: hard\nwhen: true\nrank: [pod.usage.rss]");
    const value = new Map([["web", { rss: 5 }]]);
    const parts = { clock: new FakeClock(now), cpuMs: () => 0, signal: never };
    for (const [ageMs, expected] of [
      [30_000, ["web"]],
      [30_001, []],
    ] as const) {
      expect(names(await rankPods(policy, shop, { ...parts, usages: { value, at: -ageMs } }))).toEqual(
        expected,
      );
    }
  });

  it("a pod with more labels or annotations than are looked at is left out, where they are read", async () => {
    const many = Object.fromEntries(Array.from({ length: 129 }, (_, at) => [`l${at}`, ""]));
    const pods = [testPod("many", { labels: many })];
    expect(names(await ranking("[1]", pods))).toEqual(["many"]);
    const { excluded } = await ranking("[1]", pods, { filter: "size(pod.labels) > 1" });
    expect(excluded[0]?.why).toBe("pod.labels has 129 entries, more than 128");
  });

  it("the order of pods never matters", async () => {
    const pod = fc.record({
      priority: fc.constantFrom(0, 1, 100),
      memory: fc.constantFrom("0", "1k", "2k"),
      app: fc.constantFrom("web", "job"),
      rss: fc.constantFrom(undefined, 1, 2),
    });
    const order = fc.array(pod, { minLength: 1, maxLength: 12 }).chain((pods) =>
      fc.tuple(
        fc.constant(pods),
        fc.shuffledSubarray(
          pods.map((_, at) => at),
          { minLength: pods.length },
        ),
      ),
    );
    await fc.assert(
      fc.asyncProperty(order, async ([pods, shuffled]) => {
        const all = pods.map(({ priority, memory, app }, at) =>
          testPod(`p${at}`, { priority, labels: { app }, requests: [{ memory }] }),
        );
        const usages = Object.fromEntries(pods.map(({ rss }, at) => [`p${at}`, { rss }]));
        const ask = (given: readonly ObservedPod[]) =>
          ranking("[-pod.priority, pod.usage.rss - pod.requests.memory]", given, {
            filter: 'pod.labels.app == "web"',
            usages,
          });
        expect(await ask(shuffled.map((at) => all[at]!))).toEqual(await ask(all));
      }),
      { numRuns: 100 },
    );
  });
});

describe("cost", () => {
  const pods = Array.from({ length: 1000 }, (_, at) =>
    testPod(`p${at}`, {
      annotations: Object.fromEntries(Array.from({ length: 20 }, (_, k) => [`example.com/${k}`, ""])),
    }),
  );
  const nested = "pod.annotationKeys.all(a, a in pod.annotationKeys)";

  it("a loop in a loop over 1,000 pods gives others their turn every few milliseconds", async () => {
    // A twentieth of a millisecond for each look at the clock: 50 ms in all, in slices of 5 ms.
    let elapsed = 0;
    const clock = Object.assign(new FakeClock(now), {
      monotonic: () => {
        elapsed += 0.05;
        return elapsed;
      },
    });
    const policy = policyOf(`name: a\ntype: hard\nwhen: true\npods: ${nested}\nrank: [1]`);
    let turns = 0;
    let isDone = false;
    const takeTurn = () => {
      turns++;
      if (!isDone) setImmediate(takeTurn);
    };
    setImmediate(takeTurn);
    const { ranked } = await rankPods(policy, pods, {
      usages: { missing: "" },
      clock,
      cpuMs: () => elapsed,
      signal: never,
    });
    isDone = true;
    expect(ranked).toHaveLength(1000);
    expect(turns).toBeGreaterThanOrEqual(8);
  });

  it("a ranking that takes too long is given up, and reported", async () => {
    // Each look at the clock finds that a millisecond has passed.
    let elapsed = 0;
    const clock = Object.assign(new FakeClock(now), { monotonic: () => elapsed++ });
    const policy = policyOf(`name: slow\ntype: hard\nwhen: true\npods: ${nested}\nrank: [1]`);
    const work = rankPods(policy, pods, {
      usages: { missing: "" },
      clock,
      cpuMs: () => elapsed,
      signal: never,
    });
    await expect(work).rejects.toMatchObject({
      code: "exhausted",
      message: expect.stringMatching(/^policy slow takes more than 200 ms: \d+ of 1000 pods were ranked$/),
    });
    expect(elapsed).toBeLessThan(400);
  });

  it("a ranking that waits for a busy machine is not given up", async () => {
    // Ten milliseconds pass at each look at the clock; this process gets a tenth of them.
    let elapsed = 0;
    const clock = Object.assign(new FakeClock(now), { monotonic: () => (elapsed += 10) });
    const policy = policyOf(`name: a\ntype: hard\nwhen: true\nrank: [1]`);
    const { ranked } = await rankPods(policy, pods.slice(0, 100), {
      usages: { missing: "" },
      clock,
      cpuMs: () => elapsed / 10,
      signal: never,
    });
    expect(ranked).toHaveLength(100);
    expect(elapsed).toBeGreaterThan(1_000);
  });

  it("stops when its signal aborts", async () => {
    let elapsed = 0;
    const clock = Object.assign(new FakeClock(now), { monotonic: () => (elapsed += 3) });
    const reason = new Error("stop");
    const policy = policyOf(`name: a\ntype: hard\nwhen: true\nrank: [1]`);
    const parts = { usages: { missing: "" }, clock, cpuMs: () => 0 };
    await expect(rankPods(policy, pods, { ...parts, signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
  });
});
