import type { ThresholdAnswer } from "@nodekeeper/api/decide";
import { expect } from "vitest";
import { evictPod, namesOf, type TestPlugin, TestRounds, testPod } from "./rounds.ts";

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

/** Expects that the plugin evicts no pod for so many seconds, and then the pod b. */
export function expectNextAfter(seconds: number, rounds: TestRounds, plugin: TestPlugin): void {
  rounds.pass(seconds - 1);
  expect(rounds.play({ p: plugin }).victims).toEqual([]);
  rounds.pass(1);
  expect(namesOf(rounds.play({ p: plugin }).victims)).toEqual(["b"]);
}

/** Returns rounds with the pods a and b; a ranks lowest. */
export function someRounds(policy = {}): TestRounds {
  return new TestRounds([testPod("a"), testPod("b", { priority: 5 })], policy);
}
