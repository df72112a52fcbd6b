import { expect, it } from "vitest";
import { mutations } from "../simulation/mutations/index.ts";
import { prove } from "../simulation/proof.ts";
import { sized } from "../support/sizes.ts";

// All of them take minutes: npm run simulate -- --mutations
const EVERY = sized(36, 12);

it("worlds find defects that are put into the agent", { timeout: 1_800_000 }, async () => {
  const some = mutations.filter((_, at) => at % EVERY === 0);
  expect(some.length).toBeGreaterThanOrEqual(sized(4, 12));
  expect(await prove(some, { from: 1, seeds: 500, jobs: 2 })).toBe(true);
});
