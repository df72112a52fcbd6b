import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "@nodekeeper/api/settings";
import { describe, expect, it } from "vitest";

// Our side of each mapping of docs/migrating-from-katalyst.md exists. katalyst's side was compared with its source.
const docs = join(import.meta.dirname, "../docs");
const page = readFileSync(join(docs, "migrating-from-katalyst.md"), "utf8");

/** The rows of the tables in a section of the page, as lists of cells. */
function rowsOf(heading: string): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| katalyst"))
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
}

const codesOf = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The first column of a generated page's tables. */
function namesOf(file: string, pattern: RegExp): Set<string> {
  return new Set([...readFileSync(join(docs, file), "utf8").matchAll(pattern)].map(([, name]) => name!));
}

const metrics = namesOf("metrics.md", /^\| `(nodekeeper_\w+)`/gm);
const events = namesOf("events.md", /^\| `([A-Z]\w+)` \| (?:Warning|Normal) /gm);
const paths = settings.map(({ path }) => path);
const isSetting = (name: string) => paths.some((path) => path === name || path.startsWith(`${name}.`));

describe("a row of the migration page", () => {
  const flags = rowsOf("Flags and fields");

  it.each(flags)("of settings, %s: what it names exists", (theirs, ours) => {
    const names = codesOf(ours!).filter((code) => /^[a-z]+(\.[a-z]\w*)+$/i.test(code) || isSetting(code));
    expect(names.filter((name) => !isSetting(name))).toEqual([]);
    expect(names.length > 0 || ours!.startsWith("none"), `${theirs}: ${ours}`).toBe(true);
  });

  it.each(rowsOf("Metrics"))("of metrics, %s: what it names exists", (theirs, ours) => {
    const names = codesOf(ours!).filter((code) => code.startsWith("nodekeeper_"));
    expect(names.filter((name) => !metrics.has(name))).toEqual([]);
    expect(names.length > 0 || ours!.startsWith("none"), `${theirs}: ${ours}`).toBe(true);
  });

  it.each(rowsOf("Events"))("of Events, %s: what it names exists", (theirs, ours) => {
    const names = codesOf(ours!).filter((code) => /^[A-Z]\w+$/.test(code));
    expect(names.filter((name) => !events.has(name))).toEqual([]);
    expect(names.length > 0 || ours!.startsWith("none"), `${theirs}: ${ours}`).toBe(true);
  });

  it("is found in every section", () => {
    expect(flags.length).toBeGreaterThan(50);
    expect(rowsOf("Metrics").length).toBeGreaterThan(15);
    expect(rowsOf("Events")).toHaveLength(7);
  });
});

it("every metric, setting and Event that the page names elsewhere exists", () => {
  const codes = codesOf(page);
  const named = codes.flatMap((code) => /^nodekeeper_\w+/.exec(code)?.[0] ?? []);
  expect(named.filter((name) => !metrics.has(name))).toEqual([]);
  const ours = codes.filter((code) =>
    /^(eviction|reporting|plugins|kube|server|runtime)\.[\w.]+$/.test(code),
  );
  expect(ours.filter((name) => !isSetting(name))).toEqual([]);
});
