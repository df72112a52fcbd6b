import { decide, type EvictionPod } from "@nodekeeper/api/decide";
import { addToExplanation, emptyExplanation, type PodExplanation } from "@nodekeeper/api/records";
import { verdictOf } from "@nodekeeper/api/wording";
import { type TestPlugin, TestRounds, testPod } from "../../eviction/testing/rounds.ts";
import { explanationPage } from "../eviction/explanation-page.ts";
import type { Output } from "../output.ts";

const plain: Output = { write() {}, isTerminal: false, columns: 120 };
export const START = Date.parse("2026-03-01T12:00:00.000Z");

/** Rounds five seconds apart, explained for one pod. */
export class Story {
  readonly rounds: TestRounds;
  readonly explanation: PodExplanation;
  #id = 0;

  constructor(about: EvictionPod, ...others: EvictionPod[]) {
    this.rounds = new TestRounds([about, ...others]);
    this.rounds.now = START;
    this.explanation = { ...emptyExplanation(about), coverage: { oldest: START, gaps: [] } };
  }

  play(plugins: Record<string, TestPlugin>): this {
    const input = structuredClone(this.rounds.input(plugins));
    const decision = decide(input);
    this.#id++;
    addToExplanation(this.explanation, { id: this.#id, input, decision });
    this.rounds.state = decision.state;
    this.rounds.outcomes = [];
    this.rounds.pass(5);
    return this;
  }

  step(ms: number, message: string): this {
    this.explanation.steps.push({ uid: this.explanation.uid, at: START + ms, message });
    return this;
  }

  /** The pod was deleted after a time. */
  left(ms: number, disruption: string | undefined = undefined): this {
    const { uid, namespace, name } = this.explanation;
    const { labels: _labels, annotationKeys: _keys, ...pod } = testPod(name);
    const target = disruption === undefined ? null : { reason: disruption, message: "why", at: START };
    const ending = { deletion: null, disruption: target, phase: "Running", reason: "", message: "" };
    const times = { seenAt: START, leftAt: START + ms, lastKnownAt: null };
    this.explanation.history = { uid, namespace, name, ...times, pod, ending, exits: [] };
    return this;
  }

  page(): string {
    return explanationPage(this.explanation, plain);
  }
}

export const pressure = (...top: string[]): TestPlugin => ({
  threshold: { metType: "hard", observedValue: 94.1, thresholdValue: 90 },
  top,
});

/** The pod fails after two seconds and is not deleted. */
export function finish(story: Story): void {
  story.left(5_000);
  const { history } = story.explanation;
  const exits = [{ id: "1", name: "app", exitCode: 137, reason: "Error", at: START + 2_000 }];
  const ending = { ...history!.ending, deletion: null, disruption: null, phase: "Failed" };
  Object.assign(history!, { leftAt: null, lastKnownAt: null, exits, ending });
}

/** Returns the verdict on the pod "web" after `play`. */
export function verdictAfter(play: (story: Story) => void): string {
  const story = new Story(testPod("web"), testPod("db", { priority: 5 }));
  play(story);
  return verdictOf(story.explanation).text;
}
