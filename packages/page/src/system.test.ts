import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const system = readFileSync(join(import.meta.dirname, "system.css"), "utf8");
const views = globSync(["views/*/*.css", "{overlays,parts}/*.css"], { cwd: import.meta.dirname });

it.each(views)("%s takes colors and sizes of text from the visual system", (file) => {
  const text = readFileSync(join(import.meta.dirname, file), "utf8");
  const own = [...text.matchAll(/#[\da-f]{3,8}\b|\brgba?\(.*?\)|\bhsla?\(.*?\)|font-size: (?!var\().*/g)];
  expect(own.map(([found]) => found)).toEqual([]);
  const used = [...text.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name!);
  const defined = new Set([...`${system}${text}`.matchAll(/(--[\w-]+):/g)].map(([, name]) => name));
  expect(used.filter((name) => !defined.has(name))).toEqual([]);
});

it.each(views)("%s repeats no rule of the visual system", (file) => {
  const known = new Set(rulesOf(system));
  const own = rulesOf(readFileSync(join(import.meta.dirname, file), "utf8"));
  expect(own.filter((rule) => known.has(rule))).toEqual([]);
});

const SCHEMES = { light: /:root \{([^}]*)\}/, dark: /prefers-color-scheme: dark\) \{\s*:root \{([^}]*)\}/ };
// WCAG 2.2, success criterion 1.4.3.
const LEAST_CONTRAST = 4.5;

describe.each(["light", "dark"] as const)("colors of the %s scheme", (scheme) => {
  const block = SCHEMES[scheme].exec(system)![1]!;
  const colors = new Map(
    [...block.matchAll(/--([\w-]+): (#[\da-f]{3,6});/g)].map(([, name, hex]) => [name!, rgbOf(hex!)]),
  );
  it.each([
    ...["text", "quiet", "link", "ok", "warn", "bad"].flatMap((name) =>
      ["back", "ground", "raised"].map((ground) => [name, ground]),
    ),
    ["ok", "ok-ground"],
    ["warn", "warn-ground"],
    ["bad", "bad-ground"],
    ["text", "bad-ground"],
    ["link", "line-ground"],
  ])("%s can be read on %s", (name, ground) => {
    expect(contrastOf(colors.get(name!)!, colors.get(ground!)!)).toBeGreaterThan(LEAST_CONTRAST);
  });
});

/** Rules as "selector { declarations }", each on one line; those within a media query without it. */
function rulesOf(css: string): string[] {
  const rules = css.replaceAll(/\/\*.*?\*\//gs, "").matchAll(/[^{}]+\{[^{}]*\}/g);
  return [...rules].map(([rule]) => rule.replaceAll(/\s+/g, " ").trim());
}

function rgbOf(hex: string): number[] {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1);
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16) / 255);
}

function contrastOf(a: readonly number[], b: readonly number[]): number {
  const [high, low] = [luminanceOf(a), luminanceOf(b)].sort((one, other) => other - one);
  return (high! + 0.05) / (low! + 0.05);
}

// https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
function luminanceOf(rgb: readonly number[]): number {
  const [red, green, blue] = rgb.map((value) =>
    value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
