import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findWordProblems, findWords } from "../scripts/words.ts";

describe("a banned word", () => {
  it.each([
    ["// The plugin tells us so.", '1: "tells": write report'],
    ["const toldAt = 5;", '1: "told": write report'],
    ['throw new Error("as the server said");', '1: "said": write report'],
    ["first\n  // It is made anew.", '2: "anew": write again'],
    ["state.isHopeless = true;", '1: "Hopeless": write non-retryable'],
    ["// Nobody asks for it.", '1: "Nobody": write the actor'],
    ["the round goes on without it", '1: "goes on": write continue'],
    ["// What went wrong last.", '1: "went wrong": write fail'],
    ["// The pod that has to go.", '1: "has to go": write is evicted'],
    ["// until the pod is gone", '1: "gone": write deleted'],
    ['{ result: "gone" }', '1: "gone": write deleted'],
    ['stage === "begun"', '1: "begun": write started'],
    ["while the server is away", '1: "is away": write is unavailable'],
    ["Each room has an index.", '1: "Each room": write component'],
    ["the seed's three minutes", '1: "the seed\'s": write the upstream file'],
    ["const standIns = [];", '1: "stand Ins": write last known good content'],
    ["what dry run holds back", '1: "holds back": write quarantined'],
  ])("%j", (text, problem) => {
    const found = findWords(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(problem);
  });
});

describe("another sense of a word", () => {
  it.each([
    ["the object has no room for it, so that others make room"],
    ["there is room for one more"],
    ["let room = maxDevices; room: number"],
    ["the API server answers 410 Gone"],
    ['earlierResults = { gone: "terminated" }'],
    ["drawn at random from the seed"],
    ["settleTime: 30s"],
    ["foretell, essays, spare parts, ailments, commendable, gateway"],
  ])("passes: %s", (text) => expect(findWords(text)).toEqual([]));
});

describe("in a repository", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "nodekeeper-words-"));
  });
  afterEach(() => rm(root, { recursive: true }));

  async function problemsOf(files: Record<string, string>): Promise<string[]> {
    for (const [path, source] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), source);
    }
    return findWordProblems(root);
  }

  it("names file and line, in packages, protos, scripts and docs", async () => {
    const word = "fine\nfate\n";
    const problems = await problemsOf({
      ...{
        "packages/a/b.ts": word,
        "scripts/c.ts": word,
        "docs/d.md": word,
        "proto/nodekeeper/e.proto": word,
      },
      ...{
        "packages/core/src/gen/f.ts": word,
        "docs/contributing/glossary.md": word,
        "test/fixtures/g.ts": word,
      },
    });
    expect(problems.map((problem) => problem.split('"')[0])).toEqual([
      "docs/d.md:2: ",
      "packages/a/b.ts:2: ",
      "proto/nodekeeper/e.proto:2: ",
      "scripts/c.ts:2: ",
    ]);
  });

  it("are found in tests by their names alone", async () => {
    const titles = 'it("has one fate", () => {\n  fate();\n});\n])("%s has a fate", () => {});\n';
    const problems = await problemsOf({
      "test/a.test.ts": titles,
      "bench/b.ts": "fate",
      "test/support/c.ts": "fate",
    });
    expect(problems.map((problem) => problem.split('"')[0])).toEqual([
      "bench/b.ts:1: ",
      "test/a.test.ts:1: ",
      "test/a.test.ts:4: ",
    ]);
  });
});
