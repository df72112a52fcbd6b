import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  compareQuantities,
  formatQuantity,
  isQuantity,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityOf,
  wholeUnits,
} from "./quantity.ts";

const formats: QuantityFormat[] = ["DecimalSI", "BinarySI", "DecimalExponent"];
const canonical = (text: string) => formatQuantity(parseQuantity(text));

// Each row is a rule of apimachinery's documentation of Quantity.
describe("parse and format", () => {
  it.each([
    ["zero loses its suffix", "0Ki", "0"],
    ["zero loses its sign", "-0", "0"],
    ["plain", "12345", "12345"],
    ["the largest suffix that loses nothing", "1000000", "1M"],
    ["no fractional digits", "1.5", "1500m"],
    ["binary without fractional digits", "1.5Gi", "1536Mi"],
    ["binary by its largest suffix", "1048576Ki", "1Gi"],
    ["binary below 1024 as decimal", "0.5Ki", "512"],
    ["binary that is not whole as decimal", "100.035Ki", "102435840m"],
    ["decimal zeros stay below a suffix step", "100k", "100k"],
    ["exponent family stays", "12e6", "12e6"],
    ["exponent becomes a multiple of three", "1e14", "100e12"],
    ["exponent of zero is left out", "1e0", "1"],
    ["upper-case exponent", "1E3", "1e3"],
    ["exa is no exponent", "1E", "1E"],
    ["negative exponent", "1E-3", "1e-3"],
    ["signed exponent", "1.3E+6", "1300e3"],
    ["nano", "5n", "5n"],
    ["micro", "4u", "4u"],
    ["milli", "3m", "3m"],
    ["kilo to exa", "7M", "7M"],
    ["decimal beyond exa gets an exponent", "1000E", "1e21"],
    ["a decimal is not capped", "18446744073709551616", "18446744073709551616"],
    ["a decimal is not rounded above nano", "1.2345", "1234500u"],
    ["finer than nano is rounded up", "3.001n", "4n"],
    ["however fine", "0.0000000001", "1n"],
    ["away from zero", "-0.9n", "-1n"],
    ["in the exponent family", "1.1E-9", "2e-9"],
    ["however far below", "5e-400", "1e-9"],
    ["a binary below one changes family", "0.000000000001Ki", "2n"],
    ["a binary is capped", "9Ei", "9223372036854775807"],
    ["before it is multiplied out", "9223372036854775807Ki", "9223372036854775807"],
    ["a negative binary is capped", "-8Ei", "-9223372036854775807"],
    ["the largest binary below the cap", "7Ei", "7Ei"],
    ["leading point", ".001", "1m"],
    ["trailing point", "1.G", "1G"],
    ["plus sign", "+5", "5"],
    ["leading zeros", "0005", "5"],
    ["trailing zeros", "1.500", "1500m"],
    ["negative", "-1.5Gi", "-1536Mi"],
  ])("%s: %s", (_, text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  it.each([
    "",
    " ",
    ".",
    "-",
    "+.",
    "Ki",
    "1 ",
    " 1",
    "1K",
    "1ki",
    "1KI",
    "1e",
    "1e+",
    "1e1.5",
    "1.2.3",
    "--1",
    "1_000",
    "0x10",
    "1mm",
    "1Kim",
    "NaN",
    "Infinity",
    "١",
    "1\n",
  ])("refuses %j", (text) => {
    expect(() => parseQuantity(text)).toThrow(expect.objectContaining({ code: "invalid" }));
    expect(isQuantity(text)).toBe(false);
  });

  it("refuses what would cost unbounded memory", () => {
    for (const text of ["1e1000000000", `1${"0".repeat(1e6)}`, `1e${"9".repeat(200)}`]) {
      expect(() => parseQuantity(text)).toThrow(expect.objectContaining({ code: "invalid" }));
    }
  });

  it("knows what is no text", () => {
    expect([1, null, undefined, {}, ["1"]].map(isQuantity)).not.toContain(true);
  });
});

const bound = 2n ** 63n - 1n;
const parsed = fc
  .tuple(fc.bigInt({ min: -bound, max: bound }), fc.constantFrom(...formats))
  .chain(([value, format]) =>
    fc.constantFrom(1n, 1_000n, 1_000_000_000n, 1_024_000_000_000n).map((step): Quantity => {
      const nano = value * step;
      const cap = bound * 1_000_000_000n;
      const isCapped = format === "BinarySI" && (nano > cap || nano < -cap);
      return { nano: isCapped ? value : nano, format };
    }),
  );

describe("properties", () => {
  it("a formatted quantity parses back to its value, and formats the same again where its family has a suffix", () => {
    fc.assert(
      fc.property(parsed, (quantity) => {
        const { format } = quantity;
        const text = formatQuantity(quantity);
        expect(parseQuantity(text).nano).toBe(quantity.nano);
        const again = canonical(text);
        expect(canonical(again)).toBe(again);
        // A binary one without a suffix is read as a decimal, by apimachinery too: "2000" is "2k" then.
        if (format !== "BinarySI" || !/\d$/.test(text)) expect(again).toBe(text);
      }),
      { examples: [[{ nano: -2_063_524_471_482_233_000n * 1_000_000_000n, format: "BinarySI" }]] },
    );
  });

  it("a parsed decimal has the value of its digits", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: bound }), fc.integer({ min: 0, max: 9 }), (digits, places) => {
        const padded = String(digits).padStart(places + 1, "0");
        const text = places === 0 ? padded : `${padded.slice(0, -places)}.${padded.slice(-places)}`;
        expect(parseQuantity(text).nano).toBe(digits * 10n ** BigInt(9 - places));
      }),
    );
  });

  it("orders as values do, whatever the family", () => {
    fc.assert(
      fc.property(parsed, parsed, (a, b) => {
        expect(Math.sign(compareQuantities(a, b))).toBe(a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0);
        expect(compareQuantities(a, b)).toBe(0 - compareQuantities(b, a));
      }),
    );
  });

  it("never throws anything but invalid on any text", () => {
    const alphabet = fc.string({ unit: fc.constantFrom(..."0123456789.+-eEinumkKMGTP "), maxLength: 24 });
    fc.assert(
      fc.property(alphabet, (text) => {
        if (isQuantity(text)) expect(canonical(canonical(text))).toBe(canonical(text));
      }),
      { numRuns: 1000 },
    );
  });
});

describe("whole numbers", () => {
  it("makes quantities of integers", () => {
    expect(formatQuantity(quantityOf(2n ** 40n, "BinarySI"))).toBe("1Ti");
    expect(formatQuantity(quantityOf(1500))).toBe("1500");
    expect(formatQuantity(quantityOf(12_000_000, "DecimalExponent"))).toBe("12e6");
    for (const wrong of [1.5, Number.NaN, 2 ** 53]) {
      expect(() => quantityOf(wrong)).toThrow(expect.objectContaining({ code: "invalid" }));
    }
  });

  it.each([
    ["1500m", 2n],
    ["-1500m", -2n],
    ["1n", 1n],
    ["2", 2n],
    ["0", 0n],
  ])("whole units of %s are %s", (text, expected) => {
    expect(wholeUnits(parseQuantity(text))).toBe(expected);
  });
});
