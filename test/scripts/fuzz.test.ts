import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fuzz, tryInput } from "../fuzz/fuzz.ts";
import { targets } from "../fuzz/targets/index.ts";

const directory = join(import.meta.dirname, "../fuzz/cases");

afterAll(async () => {
  for (const target of targets) await target.close?.();
});

describe("inputs that once broke a rule", () => {
  for (const name of readdirSync(directory)) {
    const target = targets.find((each) => each.name === name)!;
    it.each(readdirSync(join(directory, name)))(`${name}: %s`, async (file) => {
      await tryInput(target, readFileSync(join(directory, name, file)));
    });
  }
});

it("the fuzzer shows the smallest input that breaks a rule, and finds it again by seed and path", async () => {
  const { inputs } = targets[0]!;
  const run = (input: Uint8Array) => {
    if (input.length > 3) throw new Error("too long");
  };
  const target = { name: "broken", about: "", inputs, run };
  const { finding } = await fuzz(target, { seconds: 60, seed: 7 });
  expect(finding).toMatchObject({ error: { message: "too long" } });
  const again = await fuzz(target, { seconds: 60, seed: 7, path: finding!.path });
  expect(again.finding?.input).toEqual(finding!.input);
});
