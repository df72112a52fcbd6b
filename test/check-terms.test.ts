import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findTermProblems, settingNameProblemsIn, termProblemsIn } from "../scripts/terms.ts";

describe("another name for a term is refused, with term and reason", () => {
  it.each([
    ["// The folder of sockets.", '"folder": write directory: the term of file systems'],
    ["const dataFolder = 5;", '"Folder": write directory'],
    ["what dry run holds back", '"holds back": write quarantined'],
    ["const standIns = [];", '"stand Ins": write last known good content'],
    ["} catch (cause) {", '"catch (cause": write catch (error)'],
    ["function codeOf(thrown: unknown) {", '"thrown": write catch (error)'],
    ["log.warn({ err }, text);", '"err": write error'],
    ["const { logger } = options;", '"logger": write log'],
    ['log.child({ component: "kube" });', "write log"],
  ])("%j", (line, problem) => {
    expect(termProblemsIn("src/a.ts", `const a = 1;\n${line}\n`)).toEqual([
      expect.stringContaining(`src/a.ts:2: `),
    ]);
    expect(termProblemsIn("src/a.ts", line)[0]).toContain(problem);
  });
});

describe("accepted", () => {
  it.each([
    ["the terms", "} catch (error) { log.warn({ err: error }, text); }"],
    ["a catch clause without a name", "} catch {"],
    ["terms of code in comments", "  // what is thrown\n/** A logger. */"],
    ["terms of code in texts", 'it("is thrown", () => {});'],
    ["a setting's own name", "settleTime: 30s"],
  ])("%s", (_, source) => expect(termProblemsIn("src/a.ts", source)).toEqual([]));

  it("err in tests, for what a command wrote to stderr", () => {
    expect(termProblemsIn("src/a.test.ts", "return { status, out, err };")).toEqual([]);
  });
});

describe("names of fields that hold a setting", () => {
  const settingsFile = "packages/agent/src/lifecycle/settings.ts";

  it.each([
    "longMs: lifecycle.relistPeriod,",
    "return { ...fixed, longMs: lifecycle.relistPeriod };",
    "most: Math.min(runtime.maxMessageSize),",
    "pauseSeconds: Math.ceil(grace.shortest / 1000),",
  ])("refused: %s", (line) => {
    expect(settingNameProblemsIn(settingsFile, line)).toEqual([
      expect.stringMatching(/settings\.ts:1: .*name the field after its setting/),
    ]);
  });

  it.each([
    "relistPeriodMs: lifecycle.relistPeriod,",
    "maxMessageBytes: runtime.maxMessageSize,",
    "labelKeys: eviction.skip.labels,",
    "shortestSeconds: Math.ceil(grace.shortest / 1000),",
    "callDeadlineMs: runtime.requestTimeout + 1_000,",
    "name: lifecycle.nameOfNoSetting,",
  ])("accepted: %s", (line) => {
    expect(settingNameProblemsIn(settingsFile, line)).toEqual([]);
  });

  it("are free outside of the files that make settings", () => {
    expect(settingNameProblemsIn("packages/agent/src/assembly/plugins.ts", "path: api.socket,")).toEqual([]);
  });
});

describe("in a repository", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "nodekeeper-terms-"));
  });
  afterEach(() => rm(root, { recursive: true }));

  it("packages, protos, scripts, docs and the names of tests are checked", async () => {
    const files = {
      ...{ "packages/a/b.ts": "fine\nfolder\n", "scripts/c.ts": "folder", "docs/d.md": "folder" },
      ...{ "proto/nodekeeper/e.proto": "folder", "packages/core/src/gen/f.ts": "folder" },
      ...{ "docs/contributing/glossary.md": "folder", "test/fixtures/g.ts": "folder" },
      "test/a.test.ts": 'it("evicts softly", () => {\n  softly();\n});\n])("%s softly", () => {});\n',
    };
    for (const [path, source] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), source);
    }
    expect((await findTermProblems(root)).map((problem) => problem.split(' "')[0])).toEqual([
      ...["docs/d.md:1:", "packages/a/b.ts:2:", "proto/nodekeeper/e.proto:1:", "scripts/c.ts:1:"],
      ...["test/a.test.ts:1:", "test/a.test.ts:4:"],
    ]);
  });
});
