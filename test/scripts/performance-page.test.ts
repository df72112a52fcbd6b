import { describe, expect, it } from "vitest";
import { explanations } from "../../bench/peers/explanations.ts";
import { goalsOf } from "../../bench/peers/goals.ts";
import { performancePicture, performanceSections } from "../../bench/peers/page.ts";
import { type Pair, type Result, summaryOf } from "../../bench/peers/results.ts";
import type { GoPeer, Row } from "../../bench/peers/row.ts";
import { type RowName, rows } from "../../bench/peers/rows.ts";
import { type Outcome, summaryText } from "../../bench/peers/summary.ts";
import { readResults } from "../../scripts/performance-page.ts";

const peer: GoPeer = { directory: "lister", module: "example.com/lister", upstream: "pkg/list" };
const row: Row = {
  title: "a list, 110 pods",
  unit: "CPU ms",
  workload: "list",
  goal: 0.5,
  peer,
  ours: "`bench/lister.ts`",
  differences: ["the peer lists twice"],
};
const measured = {
  date: "2026-11-24",
  commit: "0123abcd",
  machine: "2 x processor",
  versions: "Node 24",
  load: 1,
  command: "npm run bench:peers -- --only list",
};
const resultOf = (...pairs: [number, number][]): Result => ({
  measured,
  pairs: pairs.map(([agent, peer]) => ({ agent, peer })),
});

describe("the summary of pairs", () => {
  it.each<[string, Pair[], ReturnType<typeof summaryOf>]>([
    ["one", [{ agent: 1, peer: 4 }], { agent: 1, peer: 4, ratio: 0.25, min: 0.25, max: 0.25 }],
    [
      "an even count",
      [
        { agent: 1, peer: 2 },
        { agent: 3, peer: 2 },
      ],
      { agent: 2, peer: 2, ratio: 1, min: 0.5, max: 1.5 },
    ],
    [
      "a peer that was given up on",
      [{ agent: 1, peer: 4, peerAtLeast: true }],
      { agent: 1, peer: 4, ratio: 0.25, min: 0.25, max: 0.25, peerAtLeast: true },
    ],
    [
      // The ratio of the medians would be 2.
      "an odd count: the median is of the ratios of pairs",
      [
        { agent: 1, peer: 1 },
        { agent: 2, peer: 4 },
        { agent: 8, peer: 1 },
      ],
      { agent: 2, peer: 1, ratio: 1, min: 0.5, max: 8 },
    ],
  ])("%s", (_, pairs, summary) => expect(summaryOf(pairs)).toEqual(summary));

  it.each<[string, Pair[], string]>([
    ["none", [], "no pairs"],
    ["a peer of 0", [{ agent: 1, peer: 0 }], "has no ratio"],
    ["not a number", [{ agent: Number.NaN, peer: 1 }], "has no ratio"],
  ])("refuses %s", (_, pairs, message) => expect(() => summaryOf(pairs)).toThrow(message));
});

describe("the page", () => {
  const text = (results: [string, Result][]) =>
    performanceSections({ rows: { list: row }, results: new Map(results), explanations: {} }).join("\n");

  it.each<[string, Result, string]>([
    ["a goal that is met", resultOf([1, 4], [1, 2]), "| 1 | 3 | 0.38 (0.25 to 0.50) | 0.5, met |"],
    ["a goal that is missed", resultOf([3, 4]), "| 3 | 4 | 0.75 (0.75 to 0.75) | 0.5, missed |"],
    ["thousands", resultOf([312, 8430.4]), "| 312 | 8,430 | 0.037 (0.037 to 0.037) | 0.5, met |"],
    ["machine and commit", resultOf([1, 4]), "commit 0123abcd on\n2 x processor, Node 24, load average 1"],
    ["the command", resultOf([1, 4]), "```sh run=repository\nnpm run bench:peers -- --only list\n```"],
    ["what differs", resultOf([1, 4]), "- the peer lists twice"],
  ])("states %s", (_, result, line) => expect(text([["list", result]])).toContain(line));

  it.each<[string, Partial<Row>, string]>([
    ["no goal", { goal: undefined }, "| 3 | 4 | 0.75 (0.75 to 0.75) |  |"],
    ["a limit that is met", { goal: undefined, limit: 3 }, "| 3 CPU ms, met |"],
    ["a limit that is missed, beside a goal", { goal: 1, limit: 2 }, "| 1, met; 2 CPU ms, missed |"],
    [
      "a program that imports a package",
      {},
      "`bench/peers/lister`, which imports\n`example.com/lister/pkg/list`",
    ],
    [
      "one of several programs of a module",
      { peer: { ...peer, program: "./short" } },
      "`bench/peers/lister/short`, which imports",
    ],
    [
      "a command of upstream",
      { peer: { ...peer, program: "example.com/lister/cmd/lister" } },
      "beside `example.com/lister/cmd/lister`,\nbuilt by `bench/peers/lister/go.mod`",
    ],
    ["no program", { peer: "empty process" }, "beside an empty process\nof Node"],
  ])("states %s", (_, change, line) => {
    const rows = { list: { ...row, ...change } };
    const results = new Map([["list", resultOf([3, 4])]]);
    expect(performanceSections({ rows, results, explanations: {} }).join("\n")).toContain(line);
  });

  it("states that a peer was given up on", () => {
    const pairs: Pair[] = [{ agent: 100, peer: 30_000, peerAtLeast: true }];
    const page = text([["list", { measured, pairs }]]);
    expect(page).toContain("| 100 | at least 30,000 | at most 0.003 (0.003 to 0.003) | 0.5, met |");
    expect(page).toContain("| 1 | 100 | at least 30,000 | at most 0.003 |");
  });

  it.each<[string, Partial<Row>, boolean]>([
    ["a goal is missed", {}, true],
    ["one of two goals is missed", { goal: 1 }, true],
    ["there is no goal", { goal: undefined, limit: undefined }, true],
    ["all goals are met", { goal: 1, limit: 3 }, false],
  ])("explains a row if %s: %j", (_, change, isExplained) => {
    const rows = { list: { ...row, limit: 2, ...change } };
    const page = performanceSections({
      rows,
      results: new Map([["list", resultOf([3, 4])]]),
      explanations: { list: "the list is long" },
    }).join("\n");
    expect(page.includes("Why: the list is long\n")).toBe(isExplained);
  });

  it("lists the rows without results, if there are any", () => {
    expect(text([])).toContain("`npm run bench:peers` has not been run for:\n\n- a list, 110 pods\n");
    expect(text([["list", resultOf([1, 4])]])).not.toContain("not been run");
  });

  it("refuses a result of a row that does not exist", () =>
    expect(() => text([["gone", resultOf([1, 4])]])).toThrow("no row for gone"));

  it("draws each row: range, median and goal within the picture", () => {
    const picture = performancePicture({
      rows: { list: row },
      results: new Map([["list", resultOf([0.0001, 1], [100, 1])]]),
    });
    expect(picture).toContain(">list</text>");
    expect(picture).toMatch(/class="range" x1="220" y1="\d+" x2="740"/);
    expect(picture.match(/class="median"/g)).toHaveLength(1);
    expect(picture.match(/class="goal"/g)).toHaveLength(1);
    expect(picture).toContain("prefers-color-scheme:dark");
  });
});

it.each<[string, Partial<Row>]>([
  ["a ratio", { goal: 2 }],
  ["a limit of the agent's figure", { goal: undefined, limit: 8 }],
])("the picture marks a goal that is %s", (_, change) => {
  const picture = performancePicture({
    rows: { list: { ...row, ...change } },
    // The median is on the mark.
    results: new Map([["list", resultOf([8, 4])]]),
  });
  const [, median] = /class="median" cx="(\d+)"/.exec(picture)!;
  expect(/class="goal" x1="(\d+)"/.exec(picture)![1]).toBe(median);
});

it("each row that misses its goal has an explanation with a link to its profile", async () => {
  const results = await readResults();
  const missed = Object.entries(rows).filter(([name, row]) => {
    const result = results.get(name);
    return result && goalsOf(row, summaryOf(result.pairs)).some(({ isMet }) => !isMet);
  });
  const unexplained = missed.filter(([name]) => !explanations[name as RowName]?.includes("](benchmarks.md#"));
  expect(unexplained.map(([name]) => name)).toEqual([]);
});

describe("the summary at the end", () => {
  const summary = (agent: number) => ({ summary: summaryOf([{ agent, peer: 10 }]) });

  it("states what became of each row, and counts it", () => {
    const text = summaryText(
      ["relist-110", "relist-500", "reporting-busy", "first-list", "devices-cpu"],
      new Map<RowName, Outcome>([
        ["relist-110", summary(4)],
        ["relist-500", summary(6)],
        ["reporting-busy", summary(100)],
        ["first-list", { skipped: "it has not been built" }],
        ["devices-cpu", { failed: "etcd is missing\nand more" }],
      ]),
    );
    expect(text.split("\n")).toEqual([
      "met      relist-110: ratio 0.40 (0.40 to 0.40), goal 0.5",
      "missed   relist-500: ratio 0.60 (0.60 to 0.60), goal 0.5",
      "no goal  reporting-busy: ratio 10.00 (10.00 to 10.00)",
      "skipped  first-list: it has not been built",
      "FAILED   devices-cpu: etcd is missing",
      "1 met, 1 missed, 1 no goal, 1 skipped, 1 FAILED",
    ]);
  });
});
