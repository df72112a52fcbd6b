import { expect, it } from "vitest";
import type { Eviction } from "./group-evictions.ts";
import { MOST_PAGES, ofLastHour, readLastHour } from "./last-hour.ts";

const NOW = 10_000_000;
const HOUR_MS = 3_600_000;
const outcome = { result: "terminated", message: "pod deleted" } as const;

const coverage = { oldest: null, gaps: [] };

const eviction = (uid: string, changes: Partial<Eviction> = {}): Eviction => ({
  ...{ uid, namespace: "default", name: uid, at: NOW, round: 1, plugin: "p", scope: "memory" },
  ...{ kind: "forced", reason: "why", dryRun: false, outcome: null },
  ...changes,
});

it.each<[string, Partial<Eviction>, boolean]>([
  ["ended in it", { at: NOW - HOUR_MS - 5, outcome: { ...outcome, at: NOW - HOUR_MS } }, true],
  ["ended before it", { at: NOW - HOUR_MS - 5, outcome: { ...outcome, at: NOW - HOUR_MS - 1 } }, false],
  ["in progress for longer", { at: NOW - HOUR_MS - 1 }, true],
  ["in dry run, in it", { at: NOW - HOUR_MS, dryRun: true }, true],
  ["in dry run, before it", { at: NOW - HOUR_MS - 1, dryRun: true }, false],
])("the last hour, an eviction %s: %s is %s", (_, changes, isIn) => {
  expect(ofLastHour([eviction("web", changes)], NOW)).toHaveLength(Number(isIn));
});

it("reads all pages", async () => {
  const pages = new Map([
    [0, { items: [eviction("first")], next: 7, coverage }],
    [7, { items: [eviction("second")], coverage: { ...coverage, oldest: 5 } }],
  ]);
  const hour = await readLastHour(async (after) => pages.get(after)!);
  expect(hour.items.map(({ uid }) => uid)).toEqual(["first", "second"]);
  expect(hour).toMatchObject({ isCut: false, coverage: { oldest: 5 } });
});

it("stops after a number of pages, and says that there are more", async () => {
  const { items, isCut } = await readLastHour(async (after) => ({
    items: [eviction(`after-${after}`)],
    next: after + 1,
    coverage,
  }));
  expect([items.length, isCut]).toEqual([MOST_PAGES, true]);
});
