import { expect, it } from "vitest";
import { forced, hard, someRounds } from "../../../agent/src/eviction/testing/pressures.ts";
import { prepareRound } from "./prepare.ts";

it("the records of candidates count evictions within the window of the limits, whatever else remembers them", () => {
  const rounds = someRounds({ cooldownMs: 3_600_000 });
  rounds.policy.limits.windowMs = 60_000;
  rounds.play({ p: forced("a") });
  rounds.accept("a");
  const outcome = { result: "terminated", sent: true, message: "stopped main" } as const;
  rounds.outcomes = [{ uid: "a", ...outcome, acceptedAt: rounds.now }];
  rounds.play({});
  const counts = () => {
    const [question] = prepareRound(rounds.input({ q: hard() })).questions;
    return question?.records?.flatMap(({ uid, buckets }) => buckets.map(({ count }) => [uid, count])) ?? [];
  };
  rounds.pass(30);
  expect(counts()).toEqual([["a", 1]]);
  rounds.pass(60);
  expect(rounds.state.recent).toHaveLength(1);
  expect(counts()).toEqual([]);
});
