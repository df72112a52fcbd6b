import { podText, roundHeading, roundLines, timelineOf, verdictOf } from "@nodekeeper/api/wording";
import { expect, it } from "vitest";
import { explanationMarkdown } from "./markdown.ts";
import type { ExplainedRound, Explanation } from "./story.ts";

const AT = Date.parse("2026-03-01T12:00:00.000Z");
const pod = { uid: "1", namespace: "default", name: "web" };
const neighbour = (rank: number, name: string) => ({
  ...{ uid: name, namespace: "default", name, rank, qosLevel: "shared_cores", qosClass: "Burstable" },
  ...{ priority: 0, outcome: rank === 1 ? "victim" : "notAsked", why: "no plugin requested it" },
});
const victim = {
  ...{
    ...pod,
    order: 1,
    kind: "forced",
    plugin: "disk",
    scope: "disk-io",
    gracePeriodSeconds: null,
    asks: [],
  },
  reason: "disk-io 42 > threshold 10 <img src=x>",
};
const round = {
  ...{ id: 7, at: AT, until: AT, times: 1, thresholds: [], victim, dryRunVictim: null, exclusion: null },
  pod: {
    ...{ qosLevel: "shared_cores", qosClass: "Burstable", priority: 0, priorityClassName: "" },
    ...{ gracePeriodSeconds: 30, owner: { kind: "ReplicaSet", name: "web-6d4", uid: "rs" } },
  },
  ...{ place: neighbour(1, "web"), others: [neighbour(2, "db")], candidates: 2, ranking: ["qosLevel"] },
  ...{ refusals: [], withdrawals: [], outcome: null, failures: [] },
} as unknown as ExplainedRound;
const explanation: Explanation = {
  ...{ ...pod, rounds: [round], omitted: 0, history: null, events: [], otherUids: [], recordsSince: AT },
  steps: [{ uid: "1", at: AT + 2_000, message: "eviction *accepted*" }],
  coverage: { oldest: AT, gaps: [] },
};

it("is the text of explain, and how to find it", () => {
  const markdown = explanationMarkdown(explanation, "worker-1", "http://node/#/pod/default/web?uid=1");
  const unescaped = markdown.replaceAll(/\\([^\w\s])/g, "$1");
  for (const text of [
    verdictOf(explanation).text,
    podText(round.pod!),
    roundHeading(round),
    ...roundLines(round).map(({ label, text }) => `- ${label}: ${text}`),
    ...timelineOf(explanation).map(({ message }) => message),
    "Node worker-1, UID 1",
    "| 1 | default/web | shared_cores | Burstable | 0 | selected |",
    "Records go back to 2026-03-01T12:00:00.000Z.",
  ])
    expect(unescaped).toContain(text);
  expect(markdown).toMatch(/^### Pod default\/web: Eviction in progress\n/);
  expect(markdown).toMatch(/\n\[Permalink\]\(<http:\/\/node\/#\/pod\/default\/web\?uid=1>\)\n$/);
});

it("what a plugin or the agent wrote is no markup", () => {
  const markdown = explanationMarkdown(explanation, "worker-1", "http://node/");
  expect(markdown).toContain("\\<img src=x>");
  expect(markdown).toContain("- 2026-03-01T12:00:02.000Z (+2.0 s): eviction \\*accepted\\*");
});
