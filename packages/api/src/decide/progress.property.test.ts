import fc from "fast-check";
import { expect, it } from "vitest";
import { inputs } from "../../../../test/support/sizes.ts";
import {
  evictPod,
  named,
  type TestPlugin,
  TestRounds,
  testPod,
} from "../../../agent/src/eviction/testing/rounds.ts";
import { prepareRound } from "./prepare.ts";

const names = ["a", "b", "c", "d", "e", "f"];

/** How a plugin with a hard threshold behaves when it is asked for one pod. */
type Habit = "choosesFromOffer" | "namesOnePod" | "namesStranger" | "namesAll" | "fails";

const arbitraryNode = fc.record({
  /** Pods that a disruption budget guards: each try fails. */
  guarded: fc.subarray(names),
  /** Pods of one owner, which may lose one. */
  owned: fc.subarray(names),
  /** Pods that are terminating for good. */
  hanging: fc.subarray(names),
  habits: fc.array(
    fc.constantFrom<Habit>("choosesFromOffer", "namesOnePod", "namesStranger", "namesAll", "fails"),
    { minLength: 1, maxLength: 4 },
  ),
  fixed: fc.constantFrom(...names),
  /** Rounds until an evicted pod is deleted. */
  roundsToDelete: fc.integer({ min: 1, max: 4 }),
  candidateUids: fc.constantFrom<string[]>([], [], ["a", "b", "c"]),
});

it("while a hard threshold stays met and its plugin names pods, one that can be evicted is within three rounds; a failed call selects none", () =>
  fc.assert(
    fc.property(
      arbitraryNode,
      ({ guarded, owned, hanging, habits, fixed, roundsToDelete, candidateUids }) => {
        const owner = { kind: "ReplicaSet", name: "web", uid: "web" };
        const rounds = new TestRounds(
          names.map((name) =>
            testPod(name, {
              owner: owned.includes(name) ? owner : null,
              deletionTimestamp: hanging.includes(name) ? 1 : null,
            }),
          ),
          { limits: { windowMs: 600_000, perNode: null, perNamespace: null, perOwner: 1 }, cooldownMs: 0 },
        );
        const deletions: { uid: string; at: number }[] = [];
        let idle = 0;
        for (let count = 0; count < 40; count++) {
          const habit = habits[count % habits.length]!;
          const threshold = { metType: "hard", candidateUids } as const;
          const [question] = prepareRound(rounds.input({ p: { threshold } })).questions;
          const offered = question && (question.candidateUids ?? rounds.pods.map(({ uid }) => uid));
          const answers: Record<Habit, TestPlugin["top"]> = {
            choosesFromOffer: offered?.slice(-1) ?? [],
            namesOnePod: [fixed],
            namesStranger: { pods: [named("stranger")] },
            namesAll: names,
            fails: "connection refused",
          };
          const { victims } = rounds.play({ p: { threshold, top: answers[habit] } });
          if (habit === "fails") expect(victims).toEqual([]);
          expect(victims.length).toBeLessThanOrEqual(1);
          const isOver = victims.length > 0 || offered === undefined || habit === "fails";
          idle = isOver ? 0 : idle + 1;
          expect(idle).toBeLessThan(3);
          for (const { uid } of victims) {
            if (guarded.includes(uid)) {
              rounds.outcomes.push({ uid, result: "failed", message: "a budget allows no disruption" });
            } else {
              rounds.accept(uid);
              rounds.change(uid, { deletionTimestamp: rounds.now });
              deletions.push({ uid, at: count + roundsToDelete });
            }
          }
          rounds.pass(5);
          rounds.remove(...deletions.filter(({ at }) => at === count).map(({ uid }) => uid));
        }
      },
    ),
    { numRuns: inputs(200) },
  ));

it("however many pods budgets guard, a free one is evicted before any of them is tried twice", () =>
  fc.assert(
    fc.property(
      fc.record({
        /** Workloads of guarded pods, by the number of their pods; each has a budget of its own. */
        workloads: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 }),
        kind: fc.constantFrom("hard" as const, "soft" as const, "named" as const),
        burst: fc.constantFrom(1, 3),
        failedEvictionPauseMs: fc.constantFrom(1_000, 60_000),
      }),
      ({ workloads, kind, burst, failedEvictionPauseMs }) => {
        const guarded = workloads.flatMap((count, workload) =>
          Array.from({ length: count }, (_, index) =>
            testPod(`guarded-${workload}-${index}`, {
              labels: { app: `${workload}`, "pod-template-hash": "x" },
            }),
          ),
        );
        // Of the lowest rank are the guarded ones.
        const rounds = new TestRounds([...guarded, testPod("unguarded", { priority: 1 })], {
          burst,
          failedEvictionPauseMs,
        });
        const tried: string[] = [];
        for (let count = 0; count <= workloads.length + 2 && !tried.includes("unguarded"); count++) {
          const { victims } = rounds.play({ p: askOf(kind, rounds) });
          for (const { uid } of victims) {
            tried.push(uid);
            const budget = { name: uid, currentHealthy: 1, desiredHealthy: 1 };
            rounds.outcomes.push({ uid, result: "failed", message: "a budget allows no disruption", budget });
          }
          rounds.pass(5);
        }
        expect(tried).toContain("unguarded");
        const before = tried.slice(0, tried.indexOf("unguarded"));
        expect(new Set(before).size).toBe(before.length);
      },
    ),
    { numRuns: inputs(100) },
  ));

// Asks for the lowest-ranked of the offered pods, for soft evictions of all of them, or for all pods by name.
function askOf(kind: "hard" | "soft" | "named", rounds: TestRounds): TestPlugin {
  if (kind === "named") return { pods: rounds.pods.map(({ name }) => evictPod(name, { force: true })) };
  const threshold = { metType: kind };
  const [question] = prepareRound(rounds.input({ p: { threshold } })).questions;
  const offered = question && (question.candidateUids ?? rounds.pods.map(({ uid }) => uid));
  return { threshold, top: kind === "hard" ? (offered?.slice(0, 1) ?? []) : (offered ?? []) };
}
