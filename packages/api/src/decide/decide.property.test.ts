import fc from "fast-check";
import { expect, it } from "vitest";
import { inputs } from "../../../../test/support/sizes.ts";
import { liveEvictionPolicy } from "../../../agent/src/assembly/testing/defaults.ts";
import {
  answersOf,
  nodeCondition,
  type TestPlugin,
  testNode,
  testPod,
  topsOf,
} from "../../../agent/src/eviction/testing/rounds.ts";
import { selectCandidates } from "./candidates.ts";
import { decide } from "./decide.ts";
import type { EvictionOutcome } from "./outcome.ts";
import type { EvictionPod, PodReference } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { prepareRound } from "./prepare.ts";
import type { DecideInput } from "./round.ts";
import { type EvictionState, emptyEvictionState, stateAt } from "./state.ts";

const podNames = ["a", "b", "c", "d", "e", "f", "g", "h"];
const pluginNames = ["p", "q", "r", "force"];

const arbitraryPod = (name: string): fc.Arbitrary<EvictionPod> =>
  fc
    .record({
      namespace: fc.constantFrom("default", "other"),
      nodeName: fc.constantFrom(testNode, testNode, testNode, "node-2"),
      phase: fc.constantFrom("Running", "Running", "Pending", "Failed"),
      labels: fc.constantFrom({}, {}, { keep: "" }),
      owner: fc.constantFrom(
        null,
        { kind: "ReplicaSet", name: "web", uid: "web" },
        { kind: "DaemonSet", name: "d", uid: "d" },
      ),
      qosLevel: fc.constantFrom("reclaimed_cores", "shared_cores", "system_cores", "unknown"),
      qosClass: fc.constantFrom("BestEffort", "Burstable", "Guaranteed"),
      priority: fc.constantFrom(-1, 0, 0, 100, 2_000_000_000),
      deletionTimestamp: fc.constantFrom(null, null, null, 1),
      isStatic: fc.constantFrom(false, false, false, true),
      isMirror: fc.constantFrom(false, false, false, true),
      softEvictNotify: fc.constantFrom(false, false, true),
      gracePeriodSeconds: fc.constantFrom(0, 30, 1e9),
    })
    .map((changes) => testPod(name, changes as Partial<EvictionPod>));

const arbitraryReference: fc.Arbitrary<PodReference> = fc
  .constantFrom(...podNames, "unknown", "")
  .map((uid) => ({ uid, namespace: "", name: "" }));

const arbitraryGrace = fc.constantFrom(null, null, -5, 0, 10, 9e18, Number.POSITIVE_INFINITY);
const arbitraryCondition = fc
  .tuple(
    fc.constantFrom("disk", "memory", "bad name"),
    fc.constantFrom("NoSchedule", "NoExecute", "Never"),
    fc.boolean(),
  )
  .map(([name, effect, met]) => nodeCondition(name, { effects: [effect], met }));

const arbitraryPlugin: fc.Arbitrary<TestPlugin> = fc.record(
  {
    pods: fc.oneof(
      {
        weight: 4,
        arbitrary: fc.array(
          fc.record({
            pod: arbitraryReference,
            reason: fc.constantFrom("x", "y"),
            force: fc.boolean(),
            gracePeriodSeconds: arbitraryGrace,
          }),
          { maxLength: 6 },
        ),
      },
      { weight: 1, arbitrary: fc.constant("failed") },
    ),
    podsCondition: arbitraryCondition,
    threshold: fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          metType: fc.constantFrom("none", "soft", "hard"),
          scope: fc.constantFrom("memory", "cpu", "force", "other"),
          gracePeriodSeconds: fc.constantFrom(-1, 0, 5, 10),
          condition: fc.option(arbitraryCondition),
          candidateUids: fc.constantFrom([], [], ["a", "b"]),
        }),
      },
      { weight: 1, arbitrary: fc.constant("failed") },
    ),
    top: fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          pods: fc.array(arbitraryReference, { maxLength: 3 }),
          gracePeriodSeconds: arbitraryGrace,
        }),
      },
      { weight: 1, arbitrary: fc.constant("failed") },
    ),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<TestPlugin>;

const arbitraryPolicy = fc
  .record({
    burst: fc.constantFrom(-1, 0, 1, 3),
    dryRunPlugins: fc.constantFrom<string[]>([], [], ["p"], ["*"]),
    cooldownMs: fc.constantFrom(0, 7_000),
    limits: fc.record({
      windowMs: fc.constantFrom(0, 12_000),
      perNode: fc.constantFrom(null, null, 2),
      perNamespace: fc.constantFrom(null, 1),
      perOwner: fc.constantFrom(null, 1),
    }),
  })
  .map(
    (changes): EvictionPolicy => ({
      ...liveEvictionPolicy,
      ...changes,
      skip: { labelKeys: ["keep"], annotationKeys: [], evictDaemonSetPods: false },
    }),
  );

/** What happens in one round. */
interface Step {
  /** How much time passes before it, and how far the wall clock is stepped besides. */
  seconds: number;
  clockStep: number;
  pods: EvictionPod[];
  plugins: Record<string, TestPlugin>;
  outcomes: EvictionOutcome[];
}

const arbitraryStep: fc.Arbitrary<Step> = fc.record({
  seconds: fc.constantFrom(1, 5, 5, 60, 400),
  clockStep: fc.constantFrom(0, 0, 0, -1000, 1000),
  pods: fc
    .tuple(...podNames.map((name) => fc.option(arbitraryPod(name), { freq: 8 })))
    .map((pods) => pods.filter((pod) => pod !== null)),
  plugins: fc.dictionary(fc.constantFrom(...pluginNames), arbitraryPlugin, { noNullPrototype: true }),
  outcomes: fc.array(
    fc.record({
      uid: fc.constantFrom(...podNames),
      result: fc.constantFrom(
        "terminated" as const,
        "overdue" as const,
        "failed" as const,
        "withdrawn" as const,
      ),
      sent: fc.boolean(),
      message: fc.constantFrom("", "because"),
    }),
    { maxLength: 2 },
  ),
});

const arbitraryStory = fc.record({
  policy: arbitraryPolicy,
  steps: fc.array(arbitraryStep, { minLength: 1, maxLength: 5 }),
});
type Story = { policy: EvictionPolicy; steps: Step[] };

/** Plays a story; `bend` may change each input in a way that must not matter. */
function play({ policy, steps }: Story, bend: (input: DecideInput) => DecideInput = (input) => input) {
  let state: EvictionState = emptyEvictionState();
  let now = 10_000_000;
  return steps.map(({ seconds, clockStep, pods, plugins, outcomes }) => {
    now += (seconds + clockStep) * 1000;
    state = stateAt(state, now, seconds * 1000);
    const round = { now, nodeName: testNode, pods, plugins: answersOf(plugins), outcomes, policy, state };
    const { questions } = prepareRound(round);
    const asked = new Set(questions.map(({ plugin }) => plugin));
    const tops = topsOf(plugins).filter(({ plugin }) => asked.has(plugin));
    const input = bend({ ...round, tops });
    const decision = decide(input);
    state = decision.state;
    return { input, decision };
  });
}

function check(property: (story: Story) => void) {
  fc.assert(fc.property(arbitraryStory, property), { numRuns: inputs(300) });
}

it("is the same whatever the order of pods, plugins, answers, outcomes and state", () =>
  fc.assert(
    fc.property(arbitraryStory, fc.infiniteStream(fc.nat()), (story, numbers) => {
      const shuffled = <T>(items: readonly T[]): T[] => {
        const keyed = items.map((item) => ({ item, key: numbers.next().value as number }));
        return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
      };
      const bend = (input: DecideInput): DecideInput => ({
        ...input,
        pods: shuffled(input.pods),
        outcomes: shuffled(input.outcomes),
        plugins: shuffled(
          input.plugins.map((plugin) =>
            "answer" in plugin.evictPods
              ? {
                  ...plugin,
                  evictPods: {
                    answer: { ...plugin.evictPods.answer, pods: shuffled(plugin.evictPods.answer.pods) },
                  },
                }
              : plugin,
          ),
        ),
        tops: shuffled(
          input.tops.map(({ plugin, top }) => ({
            plugin,
            top: "answer" in top ? { answer: { ...top.answer, pods: shuffled(top.answer.pods) } } : top,
          })),
        ),
        state: Object.fromEntries(
          Object.entries(input.state).map(([key, value]) => [
            key,
            Array.isArray(value) ? shuffled<unknown>(value) : value,
          ]),
        ) as unknown as EvictionState,
      });
      const straight = play(story).map(({ decision }) => JSON.stringify(decision));
      expect(play(story, bend).map(({ decision }) => JSON.stringify(decision))).toEqual(straight);
    }),
    { numRuns: inputs(300) },
  ));

it("gives the same decisions from state and input that went through JSON, as a replay does", () =>
  check((story) => {
    // A grace period that is no number is the one thing JSON can't hold; the wire has none.
    const finite = JSON.parse(JSON.stringify(story)) as Story;
    const bend = (input: DecideInput) => JSON.parse(JSON.stringify(input)) as DecideInput;
    const straight = play(finite);
    expect(play(finite, bend).map(({ decision }) => decision)).toEqual(
      straight.map(({ decision }) => decision),
    );
    for (const { input, decision } of straight) expect(decide(input)).toEqual(decision);
  }));

it("changes nothing of its input", () =>
  check((story) => {
    const inputs: string[] = [];
    const played = play(story, (input) => {
      inputs.push(JSON.stringify(input));
      return input;
    });
    expect(played.map(({ input }) => JSON.stringify(input))).toEqual(inputs);
  }));

it("never takes a protected pod, a pod twice, or more than the burst", () =>
  check((story) => {
    for (const { input, decision } of play(story)) {
      const { candidates } = selectCandidates(input.pods, input.nodeName, input.policy.skip);
      const allowed = new Set(candidates.map(({ uid }) => uid));
      const underWay = new Set(
        input.state.pending
          .filter(({ uid }) => input.outcomes.every((outcome) => outcome.uid !== uid))
          .map(({ uid }) => uid),
      );
      const uids = decision.victims.map(({ uid }) => uid);
      expect(new Set(uids).size).toBe(uids.length);
      for (const uid of [...uids, ...decision.dryRunVictims.map((victim) => victim.uid)])
        expect(allowed).toContain(uid);
      for (const { uid, deadline } of input.state.pending) {
        if (underWay.has(uid) && (deadline === null || input.now < deadline)) expect(uids).not.toContain(uid);
      }
      for (const { uid, result } of input.outcomes)
        if (result === "terminated") expect(uids).not.toContain(uid);
      if (input.policy.burst >= 0) expect(uids.length).toBeLessThanOrEqual(input.policy.burst);
      expect(decision.victims.filter(({ kind }) => kind === "soft").length).toBeLessThanOrEqual(1);
      for (const { asks } of decision.victims) {
        for (const { plugin } of asks) expect(input.policy.dryRunPlugins).not.toContain(plugin);
      }
      if (input.policy.dryRunPlugins.includes("*")) expect(uids).toEqual([]);
    }
  }));

it("never gives a grace period that is negative, too long, or 0 against the rules", () =>
  check((story) => {
    for (const { decision } of play(story)) {
      for (const { gracePeriodSeconds } of decision.victims) {
        if (gracePeriodSeconds === null) continue;
        expect(gracePeriodSeconds).toBeGreaterThan(0);
        expect(gracePeriodSeconds).toBeLessThanOrEqual(3600);
      }
    }
  }));

it("keeps to the limits of the window", () =>
  check((story) => {
    const { perNode, perNamespace, perOwner, windowMs } = story.policy.limits;
    for (const { decision } of play(story)) {
      const inWindow = decision.state.recent.filter(({ at }) => decision.state.at! - at < windowMs);
      const counts = new Map<string, number>();
      for (const { namespace, ownerUid } of inWindow) {
        for (const key of [`ns ${namespace}`, ...(ownerUid ? [`owner ${ownerUid}`] : [])]) {
          counts.set(key, (counts.get(key) ?? 0) + 1);
        }
      }
      if (perNode !== null) expect(inWindow.length).toBeLessThanOrEqual(perNode);
      for (const [key, count] of counts) {
        const limit = key.startsWith("ns ") ? perNamespace : perOwner;
        if (limit !== null) expect(count).toBeLessThanOrEqual(limit);
      }
    }
  }));

it("never resets the grace timers of a plugin that fails", () =>
  check((story) => {
    for (const { input, decision } of play(story)) {
      for (const { plugin, threshold } of input.plugins) {
        if ("answer" in threshold) continue;
        const timers = (state: EvictionState) =>
          state.thresholds
            .filter((timer) => timer.plugin === plugin)
            .map(({ scope, metType, since }) => ({ scope, metType, since }));
        expect(timers(decision.state)).toEqual(timers(input.state));
      }
    }
  }));

it("has a rank for every candidate, and an outcome for every requested pod", () =>
  check((story) => {
    for (const { input, decision } of play(story)) {
      const { candidates, exclusions } = selectCandidates(input.pods, input.nodeName, input.policy.skip);
      expect(decision.ranking.map(({ uid }) => uid).sort()).toEqual(candidates.map(({ uid }) => uid));
      expect(decision.ranking.map(({ rank }) => rank)).toEqual(candidates.map((_, index) => index + 1));
      expect(decision.exclusions).toEqual(exclusions);
      for (const { evictPods } of input.plugins) {
        const uids = "answer" in evictPods ? evictPods.answer.pods.map(({ pod }) => pod.uid) : [];
        const decided = [...decision.refusals, ...decision.victims].map(({ uid }) => uid);
        for (const uid of uids) expect(decided).toContain(uid);
      }
      const waiting = decision.ranking.filter(({ outcome }) => outcome === "waiting").map(({ uid }) => uid);
      expect(waiting.sort()).toEqual(decision.state.queue.map(({ uid }) => uid).sort());
    }
  }));
