import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { branchesOf, runOf } from "./simulation/report/coverage.ts";
import { type Counted, Tally } from "./simulation/report/tally.ts";

const world: Counted = {
  seed: 1,
  digest: "a",
  broken: [],
  steps: 10,
  virtualMs: 1_800_000,
  evictions: 2,
  lives: 1,
  faults: { agentKills: 2 },
};

describe("the report of a run", () => {
  it("is the same whatever the order in which worlds end", () => {
    const worlds = [1, 2, 3].map((seed) => ({ ...world, seed }));
    const summaryOf = (ended: readonly Counted[]) => {
      const tally = new Tally();
      for (const each of ended) tally.add(each);
      return tally.summary(1_000);
    };
    expect(summaryOf(worlds.toReversed())).toBe(summaryOf(worlds));
    expect(summaryOf(worlds.slice(1))).not.toBe(summaryOf(worlds));
  });

  it("has the speed, the faults, and each broken promise with its first seeds", () => {
    const tally = new Tally();
    for (let seed = 1; seed <= 12; seed++)
      tally.add({ ...world, seed, broken: [{ promise: "No pod is evicted twice.", what: `web-${seed}` }] });
    tally.add({ ...world, seed: 13, faults: { wallSteps: 1 } });
    const summary = tally.summary(2_000);
    expect(summary).toContain(
      "13 worlds, 6.5 virtual hours in 2.0 s: 3.25 virtual hours per second, 130 steps",
    );
    expect(summary).toContain("25 faults injected: agentKills 24, wallSteps 1");
    expect(summary).toContain(
      "broken in 12 worlds (seeds 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...): No pod is evicted twice.",
    );
    expect(summary).toContain("12 of 13 worlds broke a rule");
    expect(tally.progress(26, 60_000)).toMatch(/^13 of 26 worlds, 12 broke a rule, .*, about 1 min left$/);
  });

  it("counts each arm of a condition as covered if V8 saw it run", async () => {
    const text = `
      function used(flag) { if (flag) { return "then"; } else { return "else"; } }
      function unused() { return "never"; }
      used(true) === "then" && ["right"].length;
      used(true) === "else" || ["or"].length;
      used(true) ? ["yes"] : ["no"];
      try { used(true); } catch { ["caught"].length; }
      for (const each of []) { each.body; }
      switch (1) { case 1: ["one"].length; break; case 2: ["two"].length; }`;
    const isCovered = await run(text);
    const found = branchesOf(text).map((at) => [text.slice(at).match(/^\S+/)?.[0], isCovered[at] === 1]);
    expect(found).toEqual([
      ["if", true],
      ["return", true],
      ["return", false],
      ["return", false],
      ['["right"].length;', true],
      ['["or"].length;', true],
      ['["yes"]', true],
      ['["no"];', false],
      ['["caught"].length;', false],
      ["each.body;", false],
      ['["one"].length;', true],
      ['["two"].length;', false],
    ]);
  });
});

/** Runs a script in a process of its own, as a worker. Returns for each offset whether its code ran. */
async function run(text: string): Promise<Uint8Array> {
  const directory = mkdtempSync(join(tmpdir(), "nk-coverage-"));
  try {
    const script = join(directory, "script.cjs");
    writeFileSync(script, text);
    const env = { ...process.env, NODE_V8_COVERAGE: join(directory, "coverage") };
    await promisify(execFile)(process.execPath, [script], { env });
    const [file] = readdirSync(env.NODE_V8_COVERAGE);
    const { result } = JSON.parse(readFileSync(join(env.NODE_V8_COVERAGE, file!), "utf8"));
    const { functions } = result.find(({ url }: { url: string }) => url === String(pathToFileURL(script)));
    return runOf(functions, text.length);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
