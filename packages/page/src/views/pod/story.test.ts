import { expect, it } from "vitest";
import {
  decidingRound,
  type ExplainedRound,
  type Explanation,
  isUnderWay,
  newestFirst,
  runtimePod,
  stampOf,
} from "./story.ts";

const pod = { uid: "1", namespace: "default", name: "web" };
const victim = {
  ...{ ...pod, order: 1, kind: "forced" as const, plugin: "p", scope: "memory", reason: "why" },
  ...{ gracePeriodSeconds: null, asks: [] },
};
const refusal = { ...pod, plugin: "p", reason: "cooldown" as const, message: "cooldown" };
const outcome = (result: NonNullable<ExplainedRound["outcome"]>["result"]) => ({
  uid: "1",
  result,
  message: "",
});

const round = (id: number, changes: Partial<ExplainedRound> = {}): ExplainedRound => ({
  ...{ id, at: id * 5_000, pod: null, thresholds: [], victim: null, dryRunVictim: null, place: null },
  ...{
    exclusion: null,
    refusals: [],
    ranking: ["qosLevel"],
    candidates: 1,
    others: [],
    withdrawals: [],
    outcome: null,
    failures: [],
  },
  ...{ times: 1, until: id * 5_000 },
  ...changes,
});
const story = (...rounds: ExplainedRound[]): Explanation => ({
  ...{ ...pod, rounds, omitted: 0, steps: [], history: null, events: [], otherUids: [], recordsSince: null },
  coverage: { oldest: null, gaps: [] },
});

it.each<[string, ExplainedRound[], number | undefined]>([
  ["no round", [], undefined],
  [
    "the last that selected it",
    [round(1, { victim }), round(2, { victim }), round(3, { refusals: [refusal] })],
    2,
  ],
  ["the last that refused it", [round(1, { refusals: [refusal] }), round(2)], 1],
  ["the last of dry run", [round(1), round(2, { dryRunVictim: victim }), round(3)], 2],
  ["the last", [round(1), round(2)], 2],
])("finds the round that decided: %s", (_, rounds, id) => {
  expect(decidingRound(story(...rounds))?.id).toBe(id);
});

it.each<[string, ExplainedRound[], boolean]>([
  ["never selected", [round(1)], false],
  ["selected", [round(1, { victim })], true],
  [
    "still terminating after its time",
    [round(1, { victim }), round(2, { outcome: outcome("overdue") })],
    true,
  ],
  ["terminated", [round(1, { victim }), round(2, { outcome: outcome("terminated") })], false],
  [
    "refused, selected again",
    [round(1, { victim }), round(2, { outcome: outcome("failed") }), round(3, { victim })],
    true,
  ],
])("follows an eviction until it has ended: %s", (_, rounds, expected) => {
  expect(isUnderWay(story(...rounds))).toBe(expected);
});

it("has a word for each verdict", () => {
  const selected = story(round(1, { victim }));
  const failed = story(round(1, { victim }), round(2, { outcome: outcome("failed") }));
  const word = (explanation: Explanation, kind: "evicted" | "kept" | "other") =>
    stampOf(explanation, { kind, text: "" }).text;
  expect(word(selected, "evicted")).toBe("Evicted by Nodekeeper");
  expect(word(story(), "kept")).toBe("Not evicted");
  expect(word(selected, "other")).toBe("Eviction in progress");
  expect(word(failed, "other")).toBe("Selected, not evicted");
});

it("finds the pod at the runtime by its UID; a mirror pod by its name", () => {
  const status = { namespace: "default", name: "web", ips: [], sandboxes: [], containers: [], observedAt: 1 };
  const named = [
    { ...status, uid: "2" },
    { ...status, uid: "1" },
  ];
  expect(runtimePod(named, "1", false)?.uid).toBe("1");
  expect(runtimePod(named, "3", false)).toBeUndefined();
  expect(runtimePod(named, "3", true)?.uid).toBe("2");
});

it("of the pods of one name, the one whose sandbox was created last is first", () => {
  const status = { namespace: "default", name: "web-0", ips: [], containers: [], observedAt: 1 };
  const sandbox = (createdAt: number) => ({
    ...({ id: `s${createdAt}`, name: "", kind: "sandbox", state: "exited", attempt: 0, createdAt } as const),
    ...{ reason: "", message: "", image: "", imageRef: "" },
  });
  const named = [
    { ...status, uid: "1", sandboxes: [] },
    { ...status, uid: "2", sandboxes: [sandbox(2)] },
    { ...status, uid: "3", sandboxes: [sandbox(3), sandbox(1)] },
  ];
  expect(newestFirst(named).map(({ uid }) => uid)).toEqual(["3", "2", "1"]);
});
