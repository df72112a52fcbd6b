import type { ThresholdAnswer } from "../decide/answers.ts";
import { evictPod, type TestPlugin, TestRounds, testPod } from "./rounds.ts";

/** A plugin with a met hard threshold, which names the pod a. */
export const hard = (changes: Partial<ThresholdAnswer> = {}): TestPlugin => ({
  threshold: { metType: "hard", ...changes },
  top: ["a"],
});

/** The same with a soft one. */
export const soft = (changes: Partial<ThresholdAnswer> = {}) => hard({ metType: "soft", ...changes });

/** A plugin that requests these pods, forced. */
export const forced = (...names: string[]): TestPlugin => ({
  pods: names.map((name) => evictPod(name, { force: true })),
});

/** Rounds with the pods a and b; a ranks first. */
export function someRounds(policy = {}): TestRounds {
  return new TestRounds([testPod("a"), testPod("b", { priority: 5 })], policy);
}
