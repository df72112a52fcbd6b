import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hard, soft, someRounds } from "../../../agent/src/eviction/testing/pressures.ts";
import { type TestPlugin, TestRounds, testPod } from "../../../agent/src/eviction/testing/rounds.ts";
import { prepareRound } from "./prepare.ts";
import { resumeState } from "./state.ts";

describe("grace timers", () => {
  const grace = { gracePeriodSeconds: 10 };

  // Each step: seconds that pass before it, what the plugin answers, whether the threshold is confirmed then.
  it.each<[string, [number, TestPlugin | undefined, boolean][]]>([
    [
      "run while the threshold is met",
      [
        [0, hard(grace), false],
        [9, hard(grace), false],
        [1, hard(grace), true],
      ],
    ],
    [
      "start again after a break",
      [
        [0, hard(grace), false],
        [9, {}, false],
        [1, hard(grace), false],
        [10, hard(grace), true],
      ],
    ],
    [
      "start again from soft to hard",
      [
        [0, soft(grace), false],
        [10, hard(grace), false],
        [10, hard(grace), true],
      ],
    ],
    [
      "continue from hard to soft, for hard was soft too",
      [
        [0, hard(grace), false],
        [10, soft(grace), true],
      ],
    ],
    [
      "start again for another scope",
      [
        [0, hard(grace), false],
        [10, hard({ ...grace, scope: "cpu" }), false],
      ],
    ],
    [
      "run on while another scope of the plugin is reported",
      [
        [0, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
        [5, hard(grace), true],
        [5, hard({ ...grace, scope: "cpu" }), true],
      ],
    ],
    [
      "start again for a scope that was not reported for long",
      [
        [0, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
        [296, hard(grace), false],
        [10, hard(grace), true],
      ],
    ],
    [
      "of all scopes end with the plugin's pressure",
      [
        [0, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
        [5, {}, false],
        [5, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
      ],
    ],
    [
      "outlive a failing plugin",
      [
        [0, hard(grace), false],
        [600, { threshold: "connection refused" }, false],
        [1, hard(grace), true],
      ],
    ],
    [
      "outlive a plugin that restarts",
      [
        [0, hard(grace), false],
        [9, undefined, false],
        [1, hard(grace), true],
      ],
    ],
    [
      "don't outlive a disconnected plugin",
      [
        [0, hard(grace), false],
        [300, undefined, false],
        [1, hard(grace), false],
      ],
    ],
    ["don't wait for a negative grace period", [[0, hard({ gracePeriodSeconds: -1 }), true]]],
    [
      "wait indefinitely for an enormous one",
      [
        [0, hard({ gracePeriodSeconds: 9.2e18 }), false],
        [1e6, hard({ gracePeriodSeconds: 9.2e18 }), false],
      ],
    ],
    [
      "never end for a threshold that flaps",
      Array.from({ length: 10 }, (_, index) => [6, index % 2 ? {} : hard(grace), false]),
    ],
  ])("%s", (_, steps) => {
    const rounds = someRounds();
    for (const [seconds, plugin, confirmed] of steps) {
      rounds.pass(seconds);
      const { thresholds } = rounds.play(plugin ? { p: plugin } : {});
      expect(thresholds.some((threshold) => threshold.confirmed)).toBe(confirmed);
    }
  });

  it("take ever new scopes of one plugin for one pressure, and stay few", () => {
    const rounds = someRounds();
    let confirmed = 0;
    for (let round = 0; round < 60; round++) {
      const { thresholds } = rounds.play({ p: hard({ gracePeriodSeconds: 60, scope: `disk-${round}` }) });
      if (thresholds[0]?.confirmed) confirmed++;
      expect(thresholds[0]?.confirmed && round < 12).toBe(false);
      rounds.pass(5);
    }
    expect(confirmed).toBeGreaterThan(30);
    expect(rounds.state.thresholds.length).toBeLessThanOrEqual(16);
  });

  it("never restart while the pressure lasts, however its name changes, and never confirm too early", () => {
    const step = fc.record({
      scope: fc.constantFrom("cpu", "memory", "disk"),
      seconds: fc.integer({ min: 1, max: 10 }),
    });
    const metType = fc.constantFrom("hard" as const, "soft" as const);
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 300, maxLength: 300 }),
        fc.nat(60),
        metType,
        (steps, seconds, type) => {
          const rounds = someRounds();
          const begin = rounds.now;
          const firstReported = new Map<string, number>();
          let confirmed = 0;
          for (const { scope, seconds: pause } of steps) {
            if (rounds.now - begin > 300_000) break;
            if (!firstReported.has(scope)) firstReported.set(scope, rounds.now);
            const threshold = { metType: type, scope, gracePeriodSeconds: seconds };
            const [met] = rounds.play({ p: { threshold } }).thresholds;
            const age = rounds.now - firstReported.get(scope)!;
            expect(met?.confirmed).toBe(age >= seconds * 1000);
            if (met?.confirmed) confirmed++;
            rounds.pass(pause);
          }
          expect(confirmed).toBeGreaterThan(0);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("are each plugin's own", () => {
    const rounds = someRounds();
    rounds.play({ p: hard(grace) });
    rounds.pass(10);
    const { thresholds } = rounds.play({ p: hard(grace), q: hard(grace) });
    expect(thresholds.map(({ plugin, confirmed }) => [plugin, confirmed])).toEqual([
      ["p", true],
      ["q", false],
    ]);
  });

  it("don't count the time the agent was not running", () => {
    const rounds = someRounds();
    rounds.play({ p: hard(grace) });
    rounds.pass(5);
    rounds.play({ p: hard(grace) });
    rounds.pass(600);
    rounds.state = resumeState(rounds.state, rounds.now, 600_000);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(false);
    rounds.pass(5);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(true);
  });

  it.each([-100_000, 100_000])("keep going when the wall clock is stepped by %d s", (step) => {
    const rounds = someRounds();
    rounds.play({ p: hard(grace) });
    rounds.pass(5);
    rounds.play({ p: hard(grace) });
    rounds.stepClock(step);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(false);
    rounds.pass(5);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(true);
  });
});

describe("who is asked for top pods", () => {
  it("is whose threshold has been met for its grace period: 1 for hard, 0 for soft", () => {
    const rounds = someRounds();
    const input = rounds.input({ h: hard(), s: soft(), n: {}, g: hard({ gracePeriodSeconds: 5 }) });
    expect(prepareRound(input).questions).toEqual([
      { plugin: "h", scope: "memory", topN: 1, candidateUids: null },
      { plugin: "s", scope: "memory", topN: 0, candidateUids: null },
    ]);
  });

  it("is offered only what it named as candidates, as far as those are candidates", () => {
    const rounds = someRounds();
    const of = (candidateUids: string[]) =>
      prepareRound(rounds.input({ p: hard({ candidateUids }) })).questions;
    expect(of(["b", "x"])).toMatchObject([{ candidateUids: ["b"] }]);
    expect(of(["x"])).toEqual([]);
  });

  it("is no pod without a candidate", () => {
    const rounds = new TestRounds([testPod("a", { isStatic: true })]);
    expect(prepareRound(rounds.input({ p: hard() })).questions).toEqual([]);
  });
});
