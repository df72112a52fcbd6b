import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sourceOf, TestAgent } from "./testing/manager-setup.ts";
import { FakePods } from "./testing/round-parts.ts";
import { testThreshold } from "./testing/rounds.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nke-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("rounds out of turn", () => {
  const request = { plugin: "memory", reason: "crossed" };

  /** An agent whose plugin notes when it is asked. */
  async function started() {
    const askedAt: number[] = [];
    const plugin = sourceOf("memory", {
      thresholdMet: async () => {
        askedAt.push(agent.clock.monotonic());
        return testThreshold();
      },
    });
    const agent = new TestAgent(directory, new FakePods("a"), [plugin]);
    await agent.round();
    return { agent, askedAt };
  }

  it("start at once, and the next regular round a period later", async () => {
    const { agent, askedAt } = await started();
    using _ = agent;
    await agent.clock.step(1_234);
    agent.pacing.request(request);
    await agent.clock.step(5_000);
    expect(askedAt).toEqual([0, 1_234, 6_234]);
    const count = 'nodekeeper_eviction_rounds_out_of_turn_total{plugin="memory"} 1';
    expect(await agent.registry.metrics()).toContain(count);
  });

  it("of a signal that flaps ten times a second start once a second", async () => {
    const { agent, askedAt } = await started();
    using _ = agent;
    for (let flap = 0; flap < 100; flap++) {
      agent.pacing.request(request);
      await agent.clock.step(100);
    }
    expect(askedAt).toEqual([0, ...Array.from({ length: 11 }, (_, second) => second * 1_000)]);
  });

  it("are not started where they are off", async () => {
    const { agent, askedAt } = await started();
    using _ = agent;
    agent.settings = { ...agent.settings, outOfTurnRounds: false };
    agent.pacing.request(request);
    await agent.clock.step(4_999);
    expect(askedAt).toEqual([0]);
  });

  it("have the machine read again", async () => {
    using agent = new TestAgent(directory, new FakePods("a"), [sourceOf("memory")]);
    await agent.round();
    agent.pacing.request(request);
    await agent.clock.step(0);
    expect(agent.refreshes).toBe(2);
  });
});
