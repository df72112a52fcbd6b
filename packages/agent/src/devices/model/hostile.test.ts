import { expect, test } from "vitest";
import { PoolReader, readMessage } from "../index.ts";
import { driver, nodeName } from "../testing/slice-store.ts";

const field = (number: number, bytes: Uint8Array) =>
  Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 127) | 128);
  }
}

/** As many empty fields of a number, two bytes each. */
const empty = (number: number, count: number) => Buffer.alloc(count * 2, Buffer.from([(number << 3) | 2, 0]));

const validation = { maxDevices: 500, maxPools: 1_000, maxProblems: 100 };

test("devices are counted before they are read: of millions that are empty, as many as are allowed are looked at", () => {
  const reader = new PoolReader({ driver, nodeName, validation });
  const answer = reader.read(readMessage(field(1, empty(2, 1_500))));
  expect(answer.quarantined).toBe(1_500);
  expect(answer.problems).toHaveLength(validation.maxProblems);
  expect(answer.pools[0]!.devices).toEqual([]);
  const beyond = reader.read(readMessage(field(1, empty(2, 1_900_000))));
  expect(beyond.pools).toEqual([]);
  expect(beyond.problems).toMatchObject([{ field: "pools", message: /more than 2000 devices/ }]);
});

test("pools are counted before they are read", () => {
  const answer = new PoolReader({ driver, nodeName }).read(readMessage(empty(1, 100_000)));
  expect(answer.pools).toHaveLength(1);
  expect(answer.problems.length).toBeLessThanOrEqual(1_001);
  expect(answer.problems.at(-1)).toMatchObject({ message: "99000 pools beyond the first 1000 are not read" });
});

test("a message is read in steps, each of few devices", () => {
  const device = field(1, Buffer.from("gpu"));
  const bytes = field(1, Buffer.concat(Array.from({ length: 2_000 }, () => field(2, device))));
  const steps = new PoolReader({ driver, nodeName }).steps(readMessage(bytes));
  let count = 0;
  while (!steps.next().done) count++;
  expect(count).toBeGreaterThanOrEqual(10);
});

test.each([
  { name: "pools", bytes: empty(1, 8_000_000) },
  { name: "revisions", bytes: Buffer.alloc(16_000_000, Buffer.from([2 << 3, 1])) },
  { name: "unknown fields", bytes: empty(9, 8_000_000) },
])("a message of millions of empty $name is refused before they are counted to the end", ({ bytes }) => {
  expect(() => readMessage(bytes)).toThrow(expect.objectContaining({ code: "exhausted" }));
});
