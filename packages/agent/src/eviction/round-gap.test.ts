import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { gapMark } from "./round-gap.ts";
import { TestAgent } from "./testing/manager-setup.ts";
import { FakePods } from "./testing/round-parts.ts";

const HOUR_MS = 3_600_000;
const START = Date.parse("2026-03-01T12:00:00.000Z");
const mark = (wallMs: number, uptimeMs: number, id = "one", periodsMs = [5_000, 5_000]) =>
  gapMark(
    { at: START, boot: { id: "one", uptimeMs: HOUR_MS }, periodMs: periodsMs[0]! },
    { at: START + wallMs, boot: { id, uptimeMs: HOUR_MS + uptimeMs }, periodMs: periodsMs[1]! },
    undefined,
  );

it("is of a machine that slept, or an agent that was frozen", () => {
  expect(mark(2 * HOUR_MS, 2 * HOUR_MS)).toEqual({
    kind: "roundsPaused",
    title: "no round of eviction for 2h: the machine slept, or the agent was frozen",
    unobservedSince: START,
  });
});

it.each([
  ["a slow round", 40_000, 40_000, "one"],
  ["a clock that is set forward", HOUR_MS, 5_000, "one"],
  ["a clock that is set back", -HOUR_MS, 2 * HOUR_MS, "one"],
  ["another boot", HOUR_MS, HOUR_MS, "two"],
])("is none for %s", (_, wallMs, uptimeMs, id) => {
  expect(mark(wallMs, uptimeMs, id)).toBeUndefined();
});

it("is measured by the longer of two periods where the setting has changed in between", () => {
  expect(mark(300_000, 300_000, "one", [300_000, 5_000])).toBeUndefined();
  expect(mark(300_000, 300_000, "one", [5_000, 300_000])).toBeUndefined();
  expect(mark(300_000, 300_000, "one", [5_000, 5_000])).toBeDefined();
});

it("is made by the first round after it, and shows why rounds were skipped", async () => {
  const directory = mkdtempSync(join(tmpdir(), "nke-"));
  try {
    const pods = new FakePods("a");
    using agent = new TestAgent(directory, pods);
    const { clock } = agent;
    const round = async () => {
      agent.bootTime = { id: "one", uptimeMs: clock.monotonic() };
      await agent.round();
    };
    await round();
    await round();
    const lastAt = clock.now();
    pods.isSynced = false;
    for (let skipped = 0; skipped < 20; skipped++) await round();
    expect(agent.marks).toEqual([]);
    pods.isSynced = true;
    await round();
    await round();
    expect(agent.marks).toMatchObject([
      { kind: "roundsPaused", unobservedSince: lastAt, title: expect.stringContaining("has not listed") },
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
