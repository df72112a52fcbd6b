import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseByteSize } from "./byte-size.ts";
import { formatDuration, parseDuration } from "./duration.ts";

const invalid = expect.objectContaining({ code: "invalid" });

describe("durations", () => {
  it.each([
    ["5s", 5_000],
    ["200ms", 200],
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1_500],
    [".5s", 500],
    ["1.s", 1_000],
    ["0", 0],
    ["0s", 0],
    ["-1m", -60_000],
    ["+2s", 2_000],
    ["1us", 0.001],
    ["1µs", 0.001],
    ["1ns", 0.000001],
    ["1m1ms", 60_001],
    ["100h", 360_000_000],
    ["0.1s0.2s", 300],
  ])("reads %s as %d ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    "",
    "5",
    "s",
    ".s",
    "5 s",
    "1d",
    "5sm",
    "1e3s",
    "--5s",
    "5S",
    "1h-5m",
    "٥s",
    "5s\n",
    `${"1s".repeat(40)}`,
  ])("refuses %j", (text) => {
    expect(() => parseDuration(text)).toThrow(invalid);
  });

  it("refuses a text made to make matching slow", () => {
    expect(() => parseDuration(`${"1ms".repeat(21)}!`)).toThrow(invalid);
    expect(() => parseDuration("ms".repeat(32))).toThrow(invalid);
  });

  it.each([
    [0, "0s"],
    [200, "200ms"],
    [1.5, "1.5ms"],
    [0.001, "0.001ms"],
    [1_500, "1.5s"],
    [90_000, "1m30s"],
    [300_000, "5m"],
    [3_600_001, "1h0.001s"],
    [-5_000, "-5s"],
  ])("writes %d ms as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it("refuses to write what is no number", () => {
    expect(() => formatDuration(Number.NaN)).toThrow(invalid);
  });

  it("reads back what it wrote", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});

describe("sizes", () => {
  it.each([
    ["4Mi", 4_194_304],
    ["100k", 100_000],
    ["0", 0],
    ["1.5Ki", 1_536],
    ["100m", 1],
  ])("reads %s as %d bytes", (text, bytes) => {
    expect(parseByteSize(text)).toBe(bytes);
  });

  it.each(["-1", "8Ei", "4MB", "", "1e20"])("refuses %j", (text) => {
    expect(() => parseByteSize(text)).toThrow(invalid);
  });
});
