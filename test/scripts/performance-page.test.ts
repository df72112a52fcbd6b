import { describe, expect, it } from "vitest";
import { performancePicture, performanceSections } from "../../bench/peers/page.ts";
import { type Pair, type Result, summaryOf } from "../../bench/peers/results.ts";
import type { Row } from "../../bench/peers/rows.ts";

const row: Row = {
  title: "a list, 110 pods",
  unit: "CPU ms",
  workload: "list",
  goal: 0.5,
  peer: { directory: "lister", module: "example.com/lister", upstream: "pkg/list" },
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
    performanceSections({ rows: { list: row }, results: new Map(results) }).join("\n");

  it.each<[string, Result, string]>([
    ["a goal that is met", resultOf([1, 4], [1, 2]), "| 1 | 3 | 0.38 (0.25 to 0.50) | 0.5, met |"],
    ["a goal that is missed", resultOf([3, 4]), "| 3 | 4 | 0.75 (0.75 to 0.75) | 0.5, missed |"],
    ["thousands", resultOf([312, 8430.4]), "| 312 | 8,430 | 0.04 (0.04 to 0.04) | 0.5, met |"],
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
      { peer: { ...row.peer, program: "./short" } },
      "`bench/peers/lister/short`, which imports",
    ],
    [
      "a command of upstream",
      { peer: { ...row.peer, program: "example.com/lister/cmd/lister" } },
      "beside `example.com/lister/cmd/lister`,\nbuilt by `bench/peers/lister/go.mod`",
    ],
  ])("states %s", (_, change, line) => {
    const rows = { list: { ...row, ...change } };
    const results = new Map([["list", resultOf([3, 4])]]);
    expect(performanceSections({ rows, results }).join("\n")).toContain(line);
  });

  it("lists the rows without results, if there are any", () => {
    expect(text([])).toContain("`npm run bench:peers` has not been run for:\n\n- a list, 110 pods\n");
    expect(text([["list", resultOf([1, 4])]])).not.toContain("not been run");
  });

  it("refuses a result of a row that does not exist", () =>
    expect(() => text([["gone", resultOf([1, 4])]])).toThrow("no row for gone"));

  it("draws each row: range, median and goal within the picture", () => {
    const picture = performancePicture({
      rows: { list: { ...row, title: "a < b" } },
      results: new Map([["list", resultOf([0.001, 1], [100, 1])]]),
    });
    expect(picture).toContain("a &lt; b");
    expect(picture).toMatch(/class="range" x1="400" y1="\d+" x2="740"/);
    expect(picture.match(/class="median"/g)).toHaveLength(1);
    expect(picture).toContain("prefers-color-scheme:dark");
  });
});
