import { describe, expect, it } from "vitest";
import { at, cutName, quantity } from "./text.ts";

describe("times", () => {
  it("are times of day, with the date where that is another day", () => {
    const now = new Date(2026, 10, 22, 3, 12, 5).getTime();
    expect(at(now, now)).toBe("03:12:05");
    expect(at(now - 86_400_000, now)).toMatch(/21.* 03:12:05$/);
  });

  it("have midnight as 00", () => {
    const midnight = new Date(2026, 10, 22).getTime();
    expect(at(midnight, midnight)).toBe("00:00:00");
  });
});

const longest = "a".repeat(253);

it.each([
  ["web-0", ["web-0", "", ""]],
  ["a".repeat(44), ["a".repeat(44), "", ""]],
  [`default/${"a".repeat(44)}`, [`default/${"a".repeat(44)}`, "", ""]],
  [
    `${"n".repeat(63)}/${"a".repeat(60)}-7d9c8b6f5c-x2x4z`,
    [`${"n".repeat(63)}/${"a".repeat(26)}`, "a".repeat(34), "-7d9c8b6f5c-x2x4z"],
  ],
  [`${longest}/${longest}`, [`${longest}/${"a".repeat(26)}`, "a".repeat(210), "a".repeat(17)]],
])("the name %s is cut in the middle, its namespace kept whole", (name, parts) => {
  const { start, middle, end } = cutName(name);
  expect([start, middle, end]).toEqual(parts);
});

it.each([
  [null, "", "–"],
  [32_123, "", "32123"],
  [0.1 + 0.2, "%", "0.3 %"],
  [94.1, "%", "94.1 %"],
  [24_684_096 * 1_024, "bytes", "23.5 GiB"],
])("quantity of %d %s", (value, unit, text) => expect(quantity(value, unit)).toBe(text));
