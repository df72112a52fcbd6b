import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keepLastGood, lastGoodPath, readLastGood } from "./last-good.ts";
import { loadConfigurationForStart } from "./load.ts";

const header = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
const good = `${header}eviction: {syncPeriod: 7s}\n`;
const bad = `${header}eviction: {syncPeriod: banana}\n`;

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-last-good-"));
  file = join(directory, "config.yaml");
  keepLastGood(directory, { file, text: good });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Loads the configuration for a start with this file. Without a text there is no file. */
async function start(text: string | undefined, flags: Record<string, string> = { stateDir: directory }) {
  if (text !== undefined) writeFileSync(file, text);
  return await loadConfigurationForStart({ file, flags, env: {}, hostname: "h" });
}

describe("the last good configuration", () => {
  it.each([
    ["a wrong value", bad, "eviction.syncPeriod: got"],
    ["text that is not YAML", `${header}log: [`, "config.yaml:3:7"],
    ["an unknown setting", `${header}evictions: {}\n`, "evictions: unknown setting"],
    ["no file", undefined, "config.yaml: the file does not exist"],
  ])("is used for %s, with flags over it", async (_, text, problem) => {
    const { configuration, origins, refused } = await start(text, { stateDir: directory, logLevel: "warn" });
    expect(configuration).toMatchObject({ eviction: { syncPeriod: 7_000 }, log: { level: "warn" } });
    expect(origins.get("eviction.syncPeriod")).toBe(`${lastGoodPath(directory)}:3:24`);
    expect(refused?.summary).toContain(problem);
  });

  it("is not used for a good file", async () => {
    const { configuration, refused } = await start(`${header}eviction: {syncPeriod: 8s}\n`);
    expect([configuration.eviction.syncPeriod, refused]).toEqual([8_000, undefined]);
  });

  it("is found in the directory that the bad file names", async () => {
    const { configuration } = await start(`${bad}stateDir: ${directory}\n`, {});
    expect(configuration.eviction.syncPeriod).toBe(7_000);
  });

  it.each<[title: string, change: () => void, flags?: Record<string, string>]>([
    ["there is none", () => rmSync(lastGoodPath(directory))],
    ["it is damaged", () => writeFileSync(lastGoodPath(directory), `{"file":"${file}","text":"api`)],
    ["it has no text", () => writeFileSync(lastGoodPath(directory), JSON.stringify({ file }))],
    [
      "it has a setting that this version does not know, as after a downgrade",
      () => keepLastGood(directory, { file, text: `${good}newer: 1\n` }),
    ],
    ["it was kept for another file", () => keepLastGood(directory, { file: "/other", text: good })],
    ["a flag is wrong", () => {}, { logLevel: "loud" }],
  ])("is not used if %s: the start is refused for what is wrong with the file", async (_, change, flags) => {
    change();
    await expect(start(bad, { stateDir: directory, ...flags })).rejects.toMatchObject({
      id: "NK1001",
      message: expect.stringContaining(`${file}:3:24: eviction.syncPeriod: got "banana"`),
    });
  });

  it.each([
    [
      "names a damaged copy with the reason",
      `{"file":"`,
      bad,
      /nodekeeper\.config: the last good configuration is not used: Untermin/,
    ],
    [
      "names one that is no object",
      "null",
      bad,
      /nodekeeper\.config: the last good .* not used: it has no file name or no text/,
    ],
    [
      "names one that can't be read",
      "directory",
      bad,
      /nodekeeper\.config: the last good .* not used: EISDIR/,
    ],
    ["does not mention one that does not exist", undefined, bad, /^((?!last good).)*$/s],
  ])("a start that is refused %s", async (_, copy, text, message) => {
    rmSync(lastGoodPath(directory));
    if (copy === "directory") mkdirSync(lastGoodPath(directory));
    else if (copy !== undefined) writeFileSync(lastGoodPath(directory), copy);
    await expect(start(text)).rejects.toThrow(message);
  });

  const looked =
    "/var/lib/nodekeeper/state/nodekeeper.config: the last good configuration was looked for in this default state directory only";
  it.each([
    ["can't be parsed", "log: [", true],
    ["names no path", "stateDir: [1]\n", true],
    ["names a relative path", "stateDir: state\n", true],
    ["has an unknown setting only", "evictions: {}\n", false],
    ["has a wrong value", "log: {level: loud}\n", false],
    ["does not exist", undefined, false],
  ])(
    "a start with a file that %s says where it looked, if the file may name another directory",
    async (_, text, isSaid) => {
      const message = await start(text && header + text, {}).catch((error: Error) => error.message);
      expect(message).toContain(file);
      expect(String(message).includes(looked)).toBe(isSaid);
    },
  );

  it("says why the last good text is not used either, but not twice what is wrong with a flag", async () => {
    keepLastGood(directory, { file, text: `${good}newer: 1\n` });
    const kept = lastGoodPath(directory);
    const ends = `${kept}: the last good configuration is not used: it is refused too\n  ${kept}:4:1: newer: unknown setting`;
    await expect(start(bad)).rejects.toThrow(ends);
    keepLastGood(directory, { file, text: good });
    const flags = { stateDir: directory, logLevel: "loud" };
    await expect(start(bad, flags)).rejects.toThrow(/^((?!last good).)*$/s);
  });

  it("a damaged copy is reported when it is replaced", () => {
    writeFileSync(lastGoodPath(directory), "{");
    expect(keepLastGood(directory, { file, text: good })).toMatch(/JSON/);
    expect(keepLastGood(directory, { file, text: good })).toBeUndefined();
  });

  it("is replaced in one step; a write that fails throws", () => {
    rmSync(lastGoodPath(directory));
    expect(() => keepLastGood(join(directory, "missing"), { file, text: good })).toThrow("ENOENT");
    keepLastGood(directory, { file, text: good });
    keepLastGood(directory, { file, text: bad });
    expect(readLastGood(directory, file)).toEqual({ text: bad });
    expect(readdirSync(directory)).toEqual(["nodekeeper.config"]);
  });
});
