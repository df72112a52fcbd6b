import { decide } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { expect, it } from "vitest";
import { forced } from "../testing/pressures.ts";
import { TestRounds, testPod } from "../testing/rounds.ts";
import { EvictionList } from "./recorded-evictions.ts";

const NOT_RECORDED = { result: "unknown", message: "its outcome was not recorded" };

function played(rounds: TestRounds, id: number, ...names: string[]): RoundRecord {
  const input = rounds.input({ p: forced(...names) });
  const decision = decide(input);
  rounds.state = decision.state;
  rounds.outcomes = [];
  return { id, input, decision };
}

it("an eviction has no outcome while the state has it", () => {
  const rounds = new TestRounds([testPod("a")]);
  const list = new EvictionList();
  list.add(played(rounds, 1, "a"));
  list.endUnrecorded(rounds.state, 2_000);
  expect(list.page().items).toMatchObject([{ uid: "a", outcome: null }]);
});

it("an eviction that the state no longer has, and whose outcome no round has, was not recorded", () => {
  const rounds = new TestRounds([testPod("a")]);
  const list = new EvictionList();
  list.add(played(rounds, 1, "a"));
  list.endUnrecorded({ ...rounds.state, pending: [] }, 2_000);
  expect(list.page().items).toMatchObject([{ uid: "a", outcome: { at: 2_000, ...NOT_RECORDED } }]);
});

it("a pod that is evicted again shows that the outcome of its first eviction was not recorded", () => {
  const rounds = new TestRounds([testPod("a")]);
  const list = new EvictionList();
  list.add(played(rounds, 1, "a"));
  rounds.state = { ...rounds.state, pending: [] };
  list.add(played(rounds, 3, "a"));
  list.endUnrecorded(rounds.state, 2_000);
  expect(list.page().items).toMatchObject([
    { round: 1, outcome: NOT_RECORDED },
    { round: 3, outcome: null },
  ]);
});

it("a full page has the outcomes of its evictions, and a later page does not list them", () => {
  const dryRun = { dryRunPlugins: ["dry"], burst: 2_000 };
  const pods = Array.from({ length: 1_000 }, (_, at) => testPod(`pod-${at}`));
  const rounds = new TestRounds([testPod("a"), ...pods], dryRun);
  const play = (id: number, plugins: Parameters<TestRounds["input"]>[0]): RoundRecord => {
    const input = rounds.input(plugins);
    const decision = decide(input);
    rounds.state = decision.state;
    rounds.outcomes = [];
    return { id, input, decision };
  };
  const dry = forced(...pods.map(({ name }) => name));
  const list = new EvictionList();
  expect(list.add(play(1, { dry, p: forced("a") }))).toBe(false);
  rounds.outcomes = [{ uid: "a", result: "terminated", sent: true, message: "pod deleted" }];
  expect(list.add(play(2, { dry }))).toBe(true);
  const { items, next } = list.page();
  expect([items.length, next]).toEqual([1_001, 1]);
  expect(items.filter((item) => !item.dryRun)).toMatchObject([
    { uid: "a", outcome: { result: "terminated" } },
  ]);
});
