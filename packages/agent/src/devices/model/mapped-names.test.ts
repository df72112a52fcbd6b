import { isDnsLabel, isDnsSubdomain } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deviceNameOf, identifierOf, oldNameOf } from "../index.ts";
import { isIdentifier } from "./field-names.ts";

const mappings = [
  { name: "deviceNameOf", map: deviceNameOf, fits: isDnsLabel, example: "gpu-0" },
  { name: "identifierOf", map: identifierOf, fits: isIdentifier, example: "driverVersion" },
  { name: "oldNameOf", map: oldNameOf, fits: isDnsSubdomain, example: "gpu-0.example.com" },
];

// Names near each other, so that collisions have a chance, and any text at all.
const near = fc.stringMatching(/^[aA._-]{1,3}[aA0]{0,2}$/);
const name = fc.oneof(
  near,
  fc.string(),
  fc.constant("__proto__"),
  near.map((text) => text.repeat(80)),
);

describe.each(mappings)("$name", ({ map, fits, example }) => {
  test("a name that fits stays", () => {
    expect(map(example)).toBe(example);
  });

  test("every result fits, and no two names get one", () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 50 }), (names) => {
        // The results themselves are names too, and the likeliest to clash.
        const all = [...new Set([...names, ...names.map(map), ...names.map(map).map(map)])];
        const results = all.map(map);
        expect(results.every(fits)).toBe(true);
        expect(new Set(results).size).toBe(all.length);
      }),
    );
  });
});

test("results never change, for they outlive the agent", () => {
  expect(deviceNameOf("gpu.0")).toBe("gpu-0-hhjq5hs905");
  expect(deviceNameOf("x".repeat(200))).toMatch(/^x{52}-h[0-9a-v]{9}$/);
  expect(identifierOf("memory.free-bytes")).toMatch(/^memory_free_bytes_h[0-9a-v]{9}$/);
  expect(identifierOf("0")).toMatch(/^_0_h[0-9a-v]{9}$/);
  expect(oldNameOf("driverVersion")).toMatch(/^driverversion-h[0-9a-v]{9}$/);
});
