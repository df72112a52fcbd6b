import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memoryLine, parseCpuList, parseInteger } from "./parse.ts";

describe("CPU lists", () => {
  it.each([
    ["", []],
    ["0", [0]],
    ["0-3,8", [0, 1, 2, 3, 8]],
    ["0-6:2,9\n", [0, 2, 4, 6, 9]],
    ["3,1-2,2", [1, 2, 3]],
  ])("reads %j", (text, cpus) => expect(parseCpuList(text)).toEqual(cpus));

  it.each(["x", "1-", "3-1", "0-999999", "0-4:0", "1,,2", "-1"])("refuses %j by name", (text) => {
    expect(() => parseCpuList(text)).toThrow(JSON.stringify(text));
  });

  it("reads any ranges, in any order, overlapping or not", () => {
    const ranges = fc.array(fc.tuple(fc.nat(300), fc.nat(40)), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(ranges, (ranges) => {
        const text = ranges
          .map(([first, more]) => (more ? `${first}-${first + more}` : `${first}`))
          .join(",");
        const read = parseCpuList(text);
        const isListed = (cpu: number) => ranges.some(([first, more]) => cpu >= first && cpu <= first + more);
        expect(read).toEqual(Array.from({ length: 341 }, (_, cpu) => cpu).filter(isListed));
      }),
    );
  });
});

it("reads whole numbers and nothing else", () => {
  expect(parseInteger("-1")).toBe(-1);
  for (const text of ["", "1.5", "0x10", "abc", "9".repeat(20)])
    expect(() => parseInteger(text)).toThrow("whole number");
});

it("reads a line of meminfo, with and without a node", () => {
  expect(memoryLine("MemFree: 1 kB\nMemTotal:       16 kB\n", "MemTotal")).toBe(16_384);
  expect(memoryLine("Node 1 MemTotal:       0 kB", "MemTotal")).toBe(0);
  expect(memoryLine("MemFree: 1 kB", "MemTotal")).toBeUndefined();
});
