import { expect, it } from "vitest";
import { roundMarkdown } from "./markdown.ts";
import { decidedPods, type RoundRecord, readingsOf, sentenceOf } from "./words.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const pod = (name: string) => ({ uid: name, namespace: "default", name });
const answer = {
  scope: "memory",
  metType: "hard",
  observedValue: 94,
  thresholdValue: 90,
  operator: "greaterThan",
};
const record = {
  id: 7,
  input: {
    ...{ now: NOW, outcomes: [], state: { pending: [] } },
    pods: [{ ...pod("web"), gracePeriodSeconds: 30 }, pod("db")],
    plugins: [{ plugin: "a|b", threshold: { answer }, evictPods: { answer: { pods: [{ force: true }] } } }],
  },
  decision: {
    victims: [
      { ...pod("web"), gracePeriodSeconds: null, asks: [{ plugin: "a|b", kind: "forced", reason: "full" }] },
    ],
    ...{ dryRunVictims: [], withdrawals: [], notifications: [], ranking: [{}, {}] },
    failures: [{ plugin: "slow", call: "thresholdMet", failure: "*late*", late: true }],
    refusals: [{ ...pod("db"), plugin: "a|b", reason: "cooldown", message: "cooldown" }],
    refusalCounts: { cooldown: 1 },
    thresholds: [
      {
        plugin: "a|b",
        scope: "memory",
        since: NOW - 9_000,
        gracePeriodSeconds: 0,
        confirmed: true,
        held: null,
      },
    ],
  },
} as unknown as RoundRecord;

it("has what the view of a round shows", () => {
  const markdown = roundMarkdown(record, "worker-1", "http://node/#/round/7");
  const [decided] = decidedPods(record);
  const [reading] = readingsOf(record);
  expect(reading!.named).toEqual({ pods: 1, forced: 1 });
  expect(markdown.split("\n")).toEqual(
    expect.arrayContaining([
      "### Round 7 at 2026-03-01T12:00:00.000Z",
      sentenceOf(record),
      "Node worker-1: 2 pods, 2 of them candidates.",
      `| a\\|b | memory 94 > threshold 90 | hard | ${reading!.consequence} |`,
      `| default/web | selected | a\\|b | ${decided!.why} |`,
      "- late: ThresholdMet of slow: \\*late\\*",
      expect.stringMatching(/^\| default\/db \| a\\\|b \| .*cooldown/),
      "[Permalink](<http://node/#/round/7>)",
    ]),
  );
});

it("has no table of what there is none of", () => {
  const decision = {
    ...record.decision,
    victims: [],
    refusals: [],
    thresholds: [],
    failures: [],
    refusalCounts: {},
  };
  const none = { ...record, input: { ...record.input, plugins: [] }, decision } as RoundRecord;
  expect(roundMarkdown(none, "worker-1", "http://node/")).not.toContain("|");
});
