import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { expect, it } from "vitest";
import { checkEntries, numbers } from "./message-entries.ts";

/** Encodes a message whose fields are strings or messages. */
function message(...fields: [number, Uint8Array | string][]): Uint8Array {
  const writer = new BinaryWriter();
  for (const [number, value] of fields)
    writer.uint32((number << 3) | 2).bytes(typeof value === "string" ? Buffer.from(value) : value);
  return writer.finish();
}

it("counts entries at all levels, and nothing else", () => {
  const entry = message([2, "a"], [2, "b"], [3, "not counted"]);
  const bytes = message([1, entry], [1, entry], [4, "not counted"]);
  const repeated = { 1: { 2: {} } };
  expect(() => checkEntries(bytes, repeated, 6, "entries")).not.toThrow();
  expect(() => checkEntries(bytes, repeated, 5, "entries")).toThrow("the message has more than 5 entries");
});

it("reads no further than the first entry too many", () => {
  const bytes = new Uint8Array(4 * 1024 * 1024).fill(0xff);
  bytes.set(message([1, ""], [1, ""], [1, ""]));
  expect(() => checkEntries(bytes, { 1: {} }, 2, "entries")).toThrow("more than 2 entries");
});

it.each([
  ["a cut message", Uint8Array.of(0x0a)],
  ["an entry longer than its message", Uint8Array.of(0x0a, 5, 0)],
  ["an entry longer than the one around it", Uint8Array.of(0x0a, 2, 0x12, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0)],
])("%s is invalid", (_, bytes) => {
  expect(() => checkEntries(bytes, { 1: { 2: {} } }, 10, "entries")).toThrow("can't be decoded");
});

it("counts the bytes of packed numbers", () => {
  const bytes = message([1, "four"]);
  expect(() => checkEntries(bytes, { 1: numbers }, 4, "entries")).not.toThrow();
  expect(() => checkEntries(bytes, { 1: numbers }, 3, "entries")).toThrow("more than 3 entries");
});

it("reads no further than the first field too many, whatever its number", () => {
  const fields = Buffer.alloc(2 * 300_001, Buffer.from([0x12, 0]));
  expect(() => checkEntries(fields, { 1: {} }, 10, "entries")).toThrow("more than 300000 fields");
  const within = message([1, fields]);
  expect(() => checkEntries(within, { 1: { 1: {} } }, 10, "entries")).toThrow("more than 300000 fields");
  expect(() => checkEntries(within, { 1: {} }, 10, "entries")).not.toThrow();
});
