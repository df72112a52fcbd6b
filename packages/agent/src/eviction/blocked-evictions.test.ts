import type { MetThreshold, UnservedReason } from "@nodekeeper/api/decide";
import { expect, it } from "vitest";
import { BlockedEvictions } from "./blocked-evictions.ts";
import { FakeCondition } from "./testing/round-parts.ts";
import { testThreshold } from "./testing/rounds.ts";

const MINUTE = 60_000;

/** A confirmed hard threshold for which no pod may be selected since 0, unless `reason` is undefined. */
function met(plugin: string, reason: UnservedReason | undefined, observedValue = 0.93): MetThreshold {
  const { condition: _condition, candidateUids: _uids, ...threshold } = testThreshold({ metType: "hard" });
  const unserved = reason && { unserved: { reason, message: `because of ${reason}`, since: 0 } };
  return { ...threshold, observedValue, plugin, since: 0, confirmed: true, held: null, ...unserved };
}

function play(rounds: readonly Partial<Parameters<BlockedEvictions["note"]>[0]>[]) {
  const condition = new FakeCondition();
  const blocked = new BlockedEvictions(condition);
  for (const round of rounds) {
    const policy = { dryRunPlugins: [] };
    blocked.note({ thresholds: [], policy, forbidden: undefined, isComplete: true, now: 0, ...round });
  }
  return { condition, blocked };
}
const statuses = ({ condition }: ReturnType<typeof play>) =>
  condition.desired.map((desired) => desired && `${desired.status} ${desired.reason}`);

it.each<[string, Parameters<typeof play>[0], (string | undefined)[]]>([
  ["nothing is met", [{}], ["False EvictionPossible"]],
  ["a pod may be selected", [{ thresholds: [met("p", undefined)], now: MINUTE }], ["False EvictionPossible"]],
  [
    "it lasts less than a minute",
    [{ thresholds: [met("p", "late")], now: MINUTE - 1 }],
    ["False EvictionPossible"],
  ],
  ["it lasts a minute", [{ thresholds: [met("p", "late")], now: MINUTE }], ["True PluginLate"]],
  [
    "it is over",
    [{ thresholds: [met("p", "namedNone")], now: MINUTE }, { now: MINUTE }],
    ["True NoPodNamed", "False EvictionPossible"],
  ],
  [
    "a right is missing, at once and before others",
    [{ thresholds: [met("p", "late")], forbidden: "403", now: MINUTE }],
    ["True MissingRight"],
  ],
  [
    "after a restart plugins are not back: it does not end",
    [
      { thresholds: [met("p", "late")], now: MINUTE },
      { isComplete: false, now: MINUTE },
    ],
    ["True PluginLate"],
  ],
  [
    "every plugin is in dry run",
    [{ thresholds: [met("p", "late")], forbidden: "403", policy: { dryRunPlugins: ["*"] }, now: MINUTE }],
    [],
  ],
  [
    "this plugin is in dry run",
    [{ thresholds: [met("p", "late")], policy: { dryRunPlugins: ["p"] }, now: MINUTE }],
    ["False EvictionPossible"],
  ],
  [
    "the observed value changes: the text does not",
    [0.93, 0.94].map((value) => ({ thresholds: [met("p", "failed", value)], now: MINUTE })),
    ["True PluginFailed"],
  ],
])("%s", (_name, rounds, expected) => {
  expect(statuses(play(rounds))).toEqual(expected);
});

it("names the plugins, their thresholds, since when and why; of many, the first five", () => {
  const plugins = ["a", "b", "c", "d", "e", "f", "g"];
  const { condition } = play([{ thresholds: plugins.map((name) => met(name, "failed")), now: MINUTE }]);
  const message = condition.desired[0]!.message;
  expect(message).toMatch(
    /^a: memory > 0.8 is met and no pod may be selected since 1970-01-01T00:00:00.000Z: the call for pods failed: because of failed; b: /,
  );
  expect(message).toMatch(/; 2 more$/);
});

it("is a warning of the health check from the first round on, and also names why the condition can't be written", () => {
  const { blocked, condition } = play([{ thresholds: [met("p", "late")] }]);
  const check = () => blocked.healthCheck().check();
  expect(check()).toMatchObject({
    ok: true,
    warning: expect.stringContaining("p: memory > 0.8"),
    errorId: "NK1617",
  });
  condition.lastError = "403: forbidden";
  expect(check().warning).toContain("the Node's condition can't be written: 403: forbidden");
  expect(play([{}]).blocked.healthCheck().check()).toEqual({ ok: true, message: expect.any(String) });
});
