import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { elapsedSince } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sourceOf, TestAgent } from "./testing/manager-setup.ts";
import { FakePods } from "./testing/round-parts.ts";
import { evictPod, namesOf, testThreshold } from "./testing/rounds.ts";

const YEAR_MS = 365 * 86_400_000;
const names = ["a", "b", "c", "d", "e", "f"];

/** What happens before one round. */
interface Step {
  metType: "none" | "hard";
  forced: string[];
  /** Whether evictions under way are accepted, and then end by the deletion of their pods. */
  accept: boolean;
  end: boolean;
  fail: boolean;
  /** By how much the wall clock is stepped; a suspended machine is a step forward that no process has lived through. */
  wallStep: number;
  restart: boolean;
}

const arbitraryStep: fc.Arbitrary<Step> = fc.record({
  metType: fc.constantFrom("hard", "hard", "none"),
  forced: fc.subarray(names, { maxLength: 2 }),
  accept: fc.boolean(),
  end: fc.boolean(),
  fail: fc.constantFrom(false, false, true),
  wallStep: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 1_000, max: 120_000 }),
    fc.integer({ min: 1_000, max: YEAR_MS }),
    fc.integer({ min: -YEAR_MS, max: -1_000 }),
  ),
  restart: fc.constantFrom(false, false, false, true),
});

/** The victims of each round, on a machine whose wall clock is stepped or not. */
async function victimsOf(steps: readonly Step[], isStepped: boolean): Promise<string[][]> {
  const directory = mkdtempSync(join(tmpdir(), "nk-clock-"));
  const pods = new FakePods(...names);
  let current: Step = steps[0]!;
  const plugin = sourceOf("p", {
    getEvictPods: async () => ({
      pods: current.forced.map((name) => evictPod(name, { force: true })),
      condition: null,
    }),
    thresholdMet: async () => testThreshold({ metType: current.metType, gracePeriodSeconds: 10 }),
    getTopEvictionPods: async (offered) => ({
      pods: offered.slice(-1).map(({ pod }) => pod),
      gracePeriodSeconds: null,
    }),
  });
  const newAgent = (uptimeMs: number, wall: number) => {
    const agent = new TestAgent(directory, pods, [plugin]);
    agent.clock.jump(wall - agent.clock.now());
    Object.assign(agent.policy, {
      cooldownMs: 12_000,
      limits: { windowMs: 40_000, perNode: 4, perNamespace: null, perOwner: null },
    });
    Object.defineProperty(agent, "bootTime", {
      get: () => ({ id: "boot", uptimeMs: uptimeMs + agent.clock.monotonic() }),
    });
    return agent;
  };
  let agent = newAgent(0, 1_700_000_000_000);
  let uptimeMs = 0;
  const rounds: string[][] = [];
  try {
    for (current of steps) {
      const { evictor, clock } = agent;
      const victims = evictor.started;
      const before = victims.length;
      await agent.round();
      rounds.push(namesOf(victims.slice(before)));
      const open = agent.manager.state.pending;
      if (current.fail) {
        const unsent = open.filter(({ acceptedAt }) => acceptedAt === null);
        evictor.outcomes.push(
          ...unsent.map(({ uid }) => ({ uid, result: "failed" as const, message: "no" })),
        );
      } else if (current.accept) {
        const at = clock.monotonic();
        for (const { uid } of open) evictor.accept({ uid, at, deadline: at + 25_000 });
      }
      if (current.end) for (const { uid, acceptedAt } of open) if (acceptedAt !== null) pods.pods.delete(uid);
      if (isStepped) clock.jump(current.wallStep);
      if (!current.restart) continue;
      uptimeMs += clock.monotonic();
      await agent.stop();
      agent = newAgent(uptimeMs, clock.now());
    }
  } finally {
    agent.kill();
    rmSync(directory, { recursive: true, force: true });
  }
  return rounds;
}

describe("time", () => {
  it("steps of the wall clock by seconds to a year, and a suspended machine, change no victim", async () => {
    // Across a restart a step leaves the two clocks apart, and less time is credited: that is the next test's matter.
    const running = arbitraryStep.map((step) => ({ ...step, restart: false }));
    await fc.assert(
      fc.asyncProperty(fc.array(running, { minLength: 8, maxLength: 20 }), async (steps) => {
        expect(await victimsOf(steps, true)).toEqual(await victimsOf(steps, false));
      }),
      { numRuns: 10 },
    );
  });

  it("across restarts a stepped clock takes no pod earlier than an honest one", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryStep, { minLength: 4, maxLength: 12 }), async (steps) => {
        // Only limits, pauses and cooldowns depend on it: without a pod that is forced, more of them only delay.
        const quiet = steps.map((step) => ({ ...step, forced: [], fail: false, metType: "hard" as const }));
        const [stepped, honest] = [await victimsOf(quiet, true), await victimsOf(quiet, false)];
        const counts = (rounds: string[][]) => {
          let sum = 0;
          return rounds.map((round) => {
            sum += round.length;
            return sum;
          });
        };
        const honestCounts = counts(honest);
        counts(stepped).forEach((count, at) => {
          expect(count).toBeLessThanOrEqual(honestCounts[at]!);
        });
      }),
      { numRuns: 6 },
    );
  });

  it.each([
    ["both clocks agree", 60_000, "one", 60_000, 60_000],
    ["the wall clock was set forward", 3_600_000, "one", 60_000, 60_000],
    ["the wall clock was set back", -3_600_000, "one", 60_000, 0],
    ["the wall clock was set back a little", 40_000, "one", 60_000, 40_000],
    ["the machine was booted in between", 60_000, "two", 10_000, 0],
  ])("since a stored state is credited as far as both clocks agree: %s", (_, wallMs, id, upMs, credited) => {
    const stored = { at: 1_000_000, boot: { id: "one", uptimeMs: 5_000 } };
    const boot = { id, uptimeMs: 5_000 + upMs };
    expect(elapsedSince(stored, 1_000_000 + wallMs, boot)).toBe(credited);
  });

  it("since a stored state is not credited without a second clock", () => {
    expect(elapsedSince({ at: 1_000_000, boot: null }, 2_000_000, undefined)).toBe(0);
  });
});
