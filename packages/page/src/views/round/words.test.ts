import { expect, it } from "vitest";
import { consequenceOf, decidedPods, type RoundRecord, sentenceOf, unlistedRefusals } from "./words.ts";

const NOW = Date.UTC(2026, 10, 22, 3);
const pod = (uid: string) => ({ uid, namespace: "default", name: uid });
type Victim = RoundRecord["decision"]["victims"][number];
const victim = (uid: string, gracePeriodSeconds: number | null = null) =>
  ({
    ...pod(uid),
    gracePeriodSeconds,
    asks: [
      { plugin: "memory", kind: "soft", reason: "usage" },
      { plugin: "disk", kind: "forced", reason: "full" },
    ],
  }) as unknown as Victim;
const met = (more: object = {}) =>
  ({
    since: NOW - 60_000,
    gracePeriodSeconds: 0,
    confirmed: true,
    held: null,
    ...more,
  }) as RoundRecord["decision"]["thresholds"][number];

function recordOf(decision: object, input: object = {}): RoundRecord {
  const empty = { victims: [], dryRunVictims: [], withdrawals: [], refusals: [], refusalCounts: {} };
  return {
    id: 7,
    input: { now: NOW, pods: [], outcomes: [], state: { pending: [] }, ...input },
    decision: { ...empty, thresholds: [], notifications: [], ...decision },
  } as unknown as RoundRecord;
}

it.each([
  [{ victims: [victim("a")] }, "1 pod selected for eviction."],
  [{ victims: [victim("a")], dryRunVictims: [victim("b")] }, /^1 pod selected .* 1 pod more in dry run/],
  [{ dryRunVictims: [victim("b")] }, "No pod is evicted. 1 pod selected in dry run, only recorded."],
  [{ refusals: [{}], refusalCounts: { cooldown: 3 } }, "No pod was selected: 3 requests not granted."],
  [{ withdrawals: [{}] }, "No pod was selected, and 1 eviction withdrawn."],
  [{ thresholds: [met({ held: {} })] }, "No pod was selected: a met threshold is on hold."],
  [{ thresholds: [met({ confirmed: false })] }, /its grace period is not over/],
  [{ thresholds: [met()] }, /no plugin named a pod/],
  [{}, /conditions of the node changed/],
])("has what was decided, or why nothing was: %#", (decision, expected) => {
  if (typeof expected === "string") expect(sentenceOf(recordOf(decision))).toBe(expected);
  else expect(sentenceOf(recordOf(decision))).toMatch(expected);
});

it("has what follows from a threshold, by the round's own time", () => {
  expect(consequenceOf(undefined, NOW)).toBe("not met");
  expect(consequenceOf(met(), NOW)).toBe("met for 60s; the plugin was asked for pods");
  expect(consequenceOf(met({ confirmed: false, gracePeriodSeconds: 90 }), NOW)).toBe(
    "met for 60s; counts after its grace period of 90 s",
  );
  expect(consequenceOf(met({ held: { reason: "cooldown", until: NOW + 5_000 } }), NOW)).toMatch(
    /^met for 60s; on hold: cooldown .*, at most 5 s left$/,
  );
});

it("names the plugins of a victim and its grace period, and of an earlier eviction how it ended", () => {
  const record = recordOf(
    { victims: [victim("a", 12), victim("b")] },
    {
      pods: [{ ...pod("b"), gracePeriodSeconds: 30 }],
      outcomes: [{ uid: "c", result: "terminated", message: "pod deleted" }],
      state: { pending: [{ ...pod("c"), plugin: "memory" }] },
    },
  );
  expect(decidedPods(record)).toMatchObject([
    {
      pod: { name: "a" },
      what: "selected",
      plugins: ["memory", "disk"],
      why: "soft: usage; forced: full. Grace period: 12 s",
    },
    { pod: { name: "b" }, why: expect.stringContaining("30 s (from the pod spec)") },
    { pod: { name: "c", namespace: "default" }, plugins: ["memory"], why: "evicted: pod deleted" },
  ]);
});

it("counts requests that were not granted and are not listed", () => {
  const { decision } = recordOf({ refusals: [{}, {}], refusalCounts: { overBurst: 4, cooldown: 1 } });
  expect(unlistedRefusals(decision)).toBe(3);
});
