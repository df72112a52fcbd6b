import { describe, expect, it } from "vitest";
import { nameProblemsIn, settingNameProblemsIn } from "../scripts/names.ts";

describe("names in code", () => {
  it.each([
    ["another name in a catch clause", "} catch (cause) {", /catch \(error\)/],
    ["a parameter", "function codeOf(thrown: unknown) {", /write error/],
    ["the log's key as a variable", "log.warn({ err }, text);", /write error/],
    ["another word for the log", "const { logger } = options;", /write log/],
    ["another key for a part", 'log.child({ component: "kube" });', /logger/],
  ])("refused: %s", (_, line, expected) => {
    expect(nameProblemsIn("src/a.ts", `const a = 1;\n${line}\n`)).toEqual([
      expect.stringMatching(new RegExp(`^src/a.ts:2: .*${expected.source}`)),
    ]);
  });

  it.each([
    ["the words of the rules", "} catch (error) { log.warn({ err: error }, text); }"],
    ["a catch clause without a name", "} catch {"],
    ["comments", "  // what is thrown\n/** A logger. */"],
    ["texts", 'it("is thrown", () => {});'],
  ])("taken: %s", (_, source) => {
    expect(nameProblemsIn("src/a.ts", source)).toEqual([]);
  });

  it("are free in tests for what a command wrote to stderr", () => {
    expect(nameProblemsIn("src/a.test.ts", "return { status, out, err };")).toEqual([]);
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
  ])("taken: %s", (line) => {
    expect(settingNameProblemsIn(settingsFile, line)).toEqual([]);
  });

  it("are free outside of the files that make settings", () => {
    expect(settingNameProblemsIn("packages/agent/src/assembly/plugins.ts", "path: api.socket,")).toEqual([]);
  });
});
