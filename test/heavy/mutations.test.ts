import { expect, it } from "vitest";
import { mutations } from "../simulation/mutations/index.ts";
import { prove } from "../simulation/proof.ts";

// All of them take minutes: npm run simulate -- --mutations
const EVERY = 12;

it("worlds find defects that are put into the agent", { timeout: 1_800_000 }, async () => {
  const some = mutations.filter((_, at) => at % EVERY === 0);
  expect(some.length).toBeGreaterThan(10);
  expect(await prove(some, { from: 1, seeds: 500, jobs: 2 })).toBe(true);
});
