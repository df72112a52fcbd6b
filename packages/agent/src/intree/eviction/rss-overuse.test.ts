import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import { inTreeSource } from "./in-tree-plugin.ts";
import {
  MEMORY_ENHANCEMENT,
  overuseReason,
  type RssOveruseSettings,
  rssOveruse,
  statedRate,
} from "./overuse.ts";
import { Gi, Mi, never, TestMachine, type TestPod, testPod, uses } from "./testing/parts.ts";

const { rssOveruse: defaults } = defaultInTreeEvictionSettings;

it.each([
  [undefined, undefined],
  ["{}", undefined],
  ['{"numa_binding":"true"}', undefined],
  ['{"rss_overuse_threshold":"0.8"}', 0.8],
  ['{"rss_overuse_threshold":2}', 2],
  ['{"rss_overuse_threshold":"150%"}', "invalid"],
  ['{"rss_overuse_threshold":"0"}', "invalid"],
  ['{"rss_overuse_threshold":"-1"}', "invalid"],
  ['{"rss_overuse_threshold":""}', "invalid"],
  ['{"rss_overuse_threshold":"NaN"}', "invalid"],
  ['{"rss_overuse_threshold":null}', "invalid"],
  ["0.8", "invalid"],
  ["null", "invalid"],
  ["{", "invalid"],
  [`{"rss_overuse_threshold":"${"1".repeat(5_000)}"}`, "invalid"],
])("the annotation %s states %s", (annotation, rate) => expect(statedRate(annotation)).toBe(rate));

it.each([
  ["above", 1.06 * Gi, Gi, 1.05, true],
  ["at", 1.05 * Gi, Gi, 1.05, false],
  ["without a figure", undefined, Gi, 1.05, false],
  ["without a request", Gi, undefined, 1.05, false],
  ["with a rate that is none", Gi, 1, Number.NaN, false],
])("overuse: %s", (_, rss, request, rate, overused) => {
  expect(overuseReason(rss, request, rate) !== undefined).toBe(overused);
});

describe("the plugin", () => {
  const half = { memory: "512Mi" };

  async function namedOf(
    pod: TestPod,
    { rssBytes = 2 * Gi, settings = {} as Partial<RssOveruseSettings>, machine = new TestMachine() } = {},
  ) {
    machine.pods ??= { p: { memory: uses(0, { rssBytes }) } };
    const plugin = inTreeSource(rssOveruse, machine.parts(), () => ({ ...defaults, ...settings }));
    expect((await plugin.thresholdMet([], never)).metType).toBe("none");
    return await plugin.getEvictPods([testPod("p", pod)], never);
  }

  it("names a pod as soft, with the figures", async () => {
    expect(await namedOf({ requests: [half, half] }, { rssBytes: 1200 * Mi })).toMatchObject({
      pods: [
        {
          pod: { uid: "p" },
          force: false,
          gracePeriodSeconds: null,
          reason: "RSS of 1200Mi is 1.17 times the memory requests of 1024Mi > threshold 1.05",
        },
      ],
      condition: null,
    });
  });

  const sidecar = (memory?: string) => ({
    spec: {
      containers: [{ name: "c", resources: { requests: { memory: "1Gi" } } }],
      initContainers: [
        { name: "s", restartPolicy: "Always", resources: { requests: memory ? { memory } : {} } },
      ],
    },
  });
  const annotated = (rate: string) => ({
    requests: [{ memory: "1Gi" }],
    annotations: { [MEMORY_ENHANCEMENT]: `{"rss_overuse_threshold":"${rate}"}` },
  });

  it.each([
    ["a shared pod", { requests: [{ memory: "1Gi" }] }, 1],
    ["a reclaimed pod", { qosLevel: "reclaimed_cores", requests: [{ memory: "1Gi" }] }, 1],
    ["no dedicated pod", { qosLevel: "dedicated_cores", requests: [{ memory: "1Gi" }] }, 0],
    ["no system pod", { qosLevel: "system_cores", requests: [{ memory: "1Gi" }] }, 0],
    ["no pod of an unknown level", { qosLevel: "unknown", requests: [{ memory: "1Gi" }] }, 0],
    ["no pod within its requests", { requests: [{ memory: "2Gi" }] }, 0],
    ["no pod with a container without a request", { requests: [{ memory: "1Mi" }, {}] }, 0],
    ["no pod with a container that requests 0", { requests: [{ memory: "1Mi" }, { memory: "0" }] }, 0],
    ["no pod without requests", {}, 0],
    ["a pod with a sidecar's request too", sidecar("512Mi"), 1],
    ["no pod whose sidecar's request suffices", sidecar("1Gi"), 0],
    ["no pod with a sidecar without a request", sidecar(), 0],
    ["a pod by its own rate", annotated("1.9"), 1],
    ["no pod by its own rate", annotated("2"), 0],
    ["no pod with a rate that makes no sense", annotated("150%"), 0],
  ] as [string, TestPod, number][])("names %s", async (_, pod, count) => {
    expect((await namedOf(pod)).pods).toHaveLength(count);
  });

  it.each([
    [[], 1],
    [["tier=batch"], 1],
    [["tier=batch", "zone=a"], 0],
    [["tier=web"], 0],
    [["tier=web", "tier=batch"], 1],
  ])("looks at pods with the labels %j", async (labels, count) => {
    const pod = { requests: [{ memory: "1Gi" }], labels: { tier: "batch" } };
    expect((await namedOf(pod, { settings: { labels } })).pods).toHaveLength(count);
  });

  it("selects no pod without readings", async () => {
    const pod = { requests: [half] };
    const machine = new TestMachine();
    machine.pods = { another: { memory: uses(Gi) } };
    expect((await namedOf(pod, { machine })).pods).toEqual([]);
    const old = new TestMachine();
    old.ageMs = 31_000;
    expect((await namedOf(pod, { machine: old })).pods).toEqual([]);
    expect(await old.registry.metrics()).toContain('reading="podMemory"} 1');
  });
});
