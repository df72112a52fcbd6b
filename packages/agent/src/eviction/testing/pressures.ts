import type { ThresholdAnswer } from "@nodekeeper/api/decide";
import { evictPod, type TestPlugin, TestRounds, testPod } from "./rounds.ts";

/** Returns a plugin with a met hard threshold that names the pod a. */
export const hard = (changes: Partial<ThresholdAnswer> = {}): TestPlugin => ({
  threshold: { metType: "hard", ...changes },
  top: ["a"],
});

/** Like `hard`, with a soft threshold. */
export const soft = (changes: Partial<ThresholdAnswer> = {}) => hard({ metType: "soft", ...changes });

/** Returns a plugin that requests hard eviction of these pods. */
export const forced = (...names: string[]): TestPlugin => ({
  pods: names.map((name) => evictPod(name, { force: true })),
});

/** Returns rounds with the pods a and b; a ranks lowest. */
export function someRounds(policy = {}): TestRounds {
  return new TestRounds([testPod("a"), testPod("b", { priority: 5 })], policy);
}
