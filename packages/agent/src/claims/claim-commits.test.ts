import { expect, it } from "vitest";
import { ClaimCommits } from "./claim-commits.ts";

/** Numbers in memory, and those that were committed. A number in `refused` cannot be written. */
function setUp() {
  const memory: number[] = [];
  const committed: number[] = [];
  const refused = new Set<number>();
  let transactions = 0;
  let uncommitted: number[] = [];
  const commits = new ClaimCommits((work) => {
    transactions++;
    uncommitted = [];
    work();
    committed.push(...uncommitted);
  });
  const add = (number: number) =>
    commits.add({
      apply: () => memory.push(number),
      revert: () => memory.splice(memory.lastIndexOf(number), 1),
      write: () => {
        if (refused.has(number)) throw new Error(`no room for ${number}`);
        uncommitted.push(number);
      },
    });
  return { memory, committed, refused, add, transactions: () => transactions };
}

it("changes of one turn are visible at once, and committed together in the order of the calls", async () => {
  const { memory, committed, add, transactions } = setUp();
  const all = [3, 1, 2].map(add);
  expect([memory, committed]).toEqual([[3, 1, 2], []]);
  await all[0];
  expect(committed).toEqual([3, 1, 2]);
  await Promise.all(all);
  expect(transactions()).toBe(1);
  await add(4);
  expect([committed.at(-1), transactions()]).toEqual([4, 2]);
});

it("a change that can't be written is reverted, and fails alone", async () => {
  const { memory, committed, refused, add } = setUp();
  refused.add(1);
  const results = await Promise.allSettled([0, 1, 2].map(add));
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(results[1]).toMatchObject({ reason: new Error("no room for 1") });
  expect([memory, committed]).toEqual([
    [0, 2],
    [0, 2],
  ]);
  await expect(add(1)).rejects.toThrow("no room for 1");
  expect(memory).toEqual([0, 2]);
});
