import { expect, it } from "vitest";
import { type Eviction, groupEvictions } from "./group-evictions.ts";

const eviction = (uid: string, round: number, dryRun: boolean): Eviction => ({
  ...{ uid, namespace: "default", name: uid, at: round * 5_000, round, plugin: "p", scope: "memory" },
  ...{ kind: "forced", reason: "why", dryRun, outcome: null },
});

it("has the last first, and what a plugin in dry run requests again once with its number", () => {
  const items = [
    eviction("web", 1, true),
    eviction("api", 2, false),
    eviction("web", 3, true),
    eviction("api", 4, false),
    eviction("web", 5, true),
  ];
  expect(groupEvictions(items).map(({ last, times }) => `${last.uid} ${last.round} ${times}`)).toEqual([
    "web 5 3",
    "api 4 1",
    "api 2 1",
  ]);
});
