import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { mutations } from "./simulation/mutations/index.ts";
import { shrink } from "./simulation/shrink.ts";
import type { Outcome } from "./simulation/simulate.ts";
import { noFaults } from "./simulation/world/faults.ts";
import type { PlanChanges } from "./simulation/world/plan.ts";

const run = promisify(execFile);

/** Output of `npm run simulate`. Rejects if a rule was broken, with the output. */
async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, ["test/simulation/main.ts", ...args]);
  return stdout;
}

describe("the whole agent in worlds of virtual time", () => {
  it("keeps every promise", async () => {
    expect(await simulate("--seeds=100", "--quick")).toContain("\n0 of ");
  });

  // Among them, worlds with a host whose files are read, and with drivers.
  it("lives each world in the same way again, in any process", async () => {
    const digestOf = (output: string) => /digest of all worlds: (\w+)/.exec(output)?.[1];
    const [first, second] = [
      await simulate("--from=132", "--seeds=4", "--jobs=1"),
      await simulate("--from=132", "--seeds=4", "--jobs=4"),
    ];
    expect(digestOf(first)).toMatch(/^\w{16}$/);
    expect(digestOf(second)).toBe(digestOf(first));
  });

  it("has mutations of places that exist, each with a name of its own", () => {
    const occurrences = mutations.map(
      ({ name, file, from }) => [name, readFileSync(file, "utf8").split(from).length - 1] as const,
    );
    expect(Object.fromEntries(occurrences)).toEqual(
      Object.fromEntries(mutations.map(({ name }) => [name, 1])),
    );
    expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length);
  });

  it("ends with the report of the worlds that have ended when it is interrupted", async () => {
    const child = spawn(process.execPath, ["test/simulation/main.ts", "--seeds=100000", "--jobs=1"]);
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      // The first line is printed when it can be interrupted.
      if (output === "") child.kill("SIGINT");
      output += text;
    });
    expect(await once(child, "close")).toEqual([130, null]);
    expect(output).toMatch(/interrupted after \d+ of 100000 worlds/);
    expect(output).toMatch(/\d+ of \d+ worlds broke a rule\n$/);
  });

  it("leaves out each fault of a world that does not lead to the finding", async () => {
    const all = Object.fromEntries(Object.keys(noFaults).map((name) => [name, 0.5]));
    const simulated = ({ faults }: PlanChanges = {}) =>
      ({
        broken: (faults?.lostRequests ?? 0.5) > 0 ? [{ promise: "A promise." }] : [],
        plan: { faults: { ...all, ...faults } },
        events: [],
      }) as unknown as Outcome;
    const found = await shrink(
      async (_seed, changes) => simulated(changes),
      simulated(),
      () => {},
    );
    expect(found.plan.faults).toEqual({ ...noFaults, lostRequests: 0.5 });
  });

  it("refuses arguments that make no sense", async () => {
    await expect(simulate("--seeds=0")).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--seeds must be a whole number of at least 1, got "0"'),
    });
  });
});
