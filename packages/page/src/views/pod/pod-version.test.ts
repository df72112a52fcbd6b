import { expect, it } from "vitest";
import type { Live } from "../../live.ts";
import { podVersion } from "./pod-version.ts";

const pod = { uid: "1", namespace: "default", name: "web" };
const round = (id: number, changes = {}) => ({
  ...{ id, at: id * 5_000, pods: 3, candidates: 3, plugins: 1, met: [], victims: [], dryRunVictims: [] },
  ...{ refusals: {}, withdrawals: 0, outcomes: [], failures: [] },
  ...changes,
});
const event = (sequence: number, uid: string) => ({
  ...{ sequence, type: "ContainerDied" as const, at: 1_000, reason: "" },
  pod: { ...pod, uid },
});
const live = (changes: Partial<Live> = {}): Live => ({
  ...{ rounds: [], readings: [], events: [], marks: [], missedAt: undefined, connection: { state: "open" } },
  ...changes,
});
const versionOf = (changes: Partial<Live>) => podVersion(live(changes), "1");
const before = versionOf({});

it.each<[string, Partial<Live>]>([
  ["a round selected it", { rounds: [round(7, { victims: [pod] })] }],
  ["a plugin in dry run would have evicted it", { rounds: [round(7, { dryRunVictims: [pod] })] }],
  [
    "its eviction ended",
    { rounds: [round(7, { outcomes: [{ ...pod, result: "failed" as const, message: "refused" }] })] },
  ],
  ["a round refused some pod", { rounds: [round(7, { refusals: { cooldown: 2 } })] }],
  ["its container died", { events: [event(9, "1")] }],
  ["events were missed", { missedAt: 5_000 }],
])("changes where %s", (_, changes) => {
  expect(versionOf(changes)).not.toBe(before);
});

it("does not change with what concerns other pods", () => {
  expect(
    versionOf({ rounds: [round(7, { victims: [{ ...pod, uid: "2" }] })], events: [event(9, "2")] }),
  ).toBe(before);
});

it("changes with rounds that refuse pods every 15 s at most", () => {
  const refusing = (ids: number[]) =>
    versionOf({ rounds: ids.map((id) => round(id, { refusals: { cooldown: 1 } })) });
  expect(refusing([3, 4, 5])).toBe(refusing([3]));
  expect(refusing([3, 4, 5, 6])).not.toBe(refusing([3]));
});
