import {
  Container,
  ListContainersResponse,
  ListPodSandboxResponse,
  PodSandbox,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readContainer, readSandbox } from "./list-decoding.ts";
import { ListItems } from "./list-items.ts";
import type { WireReader } from "./wire-reader.ts";

// As one message in gRPC's framing, in chunks of the size.
function decode<Item>(
  bytes: Uint8Array,
  read: (reader: WireReader, end: number) => Item,
  chunkSize: number,
): Item[] {
  const reader = new ListItems({ maxBytes: 1_000_000, maxItems: 1_000, read });
  const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), bytes]);
  body.writeUInt32BE(bytes.length, 1);
  for (let at = 0; at < body.length; at += chunkSize) reader.push(body.subarray(at, at + chunkSize));
  return reader.end();
}

const decodeSandboxes = (bytes: Uint8Array, chunkSize = bytes.length + 5) =>
  decode(bytes, readSandbox, chunkSize);
const decodeContainers = (bytes: Uint8Array, chunkSize = bytes.length + 5) =>
  decode(bytes, readContainer, chunkSize);

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const state = fc.integer({ min: 0, max: 5 });
const text = fc.string({ unit: "binary", maxLength: 40 });
const sandbox = fc.record({
  id: text,
  metadata: fc.option(fc.record({ name: text, uid: text, namespace: text, attempt: uint32 }), {
    nil: undefined,
  }),
  state,
  createdAt: int64,
});
const container = fc.record({
  id: text,
  podSandboxId: text,
  metadata: fc.option(fc.record({ name: text, attempt: uint32 }), { nil: undefined }),
  state,
  createdAt: int64,
});
// Fields that are skipped, of each wire type: labels, numbers, fixed ones.
const unknown = fc.array(
  fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => [0x42, ...varint(bytes.length), ...bytes]),
    fc.constant<number[]>([0x98, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
    fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) => [0xa1, 0x06, ...bytes]),
    fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => [0xad, 0x06, ...bytes]),
  ),
  { maxLength: 4 },
);

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 0x7f) | 0x80, value >>> 7];
}

function list(items: readonly (readonly [Uint8Array, readonly number[][]])[]): Uint8Array {
  return Uint8Array.from(
    items.flatMap(([bytes, extra]) => {
      const item = [...bytes, ...extra.flat()];
      return [0x0a, ...varint(item.length), ...item];
    }),
  );
}

describe("decoding a list by hand", () => {
  it("gives what the generated code gives", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(sandbox, unknown), { maxLength: 5 }),
        fc.array(fc.tuple(container, unknown), { maxLength: 5 }),
        fc.integer({ min: 1, max: 700 }),
        (sandboxes, containers, chunkSize) => {
          const some = list(
            sandboxes.map(([one, extra]) => [PodSandbox.encode(one as PodSandbox).finish(), extra] as const),
          );
          const others = list(
            containers.map(([one, extra]) => [Container.encode(one as Container).finish(), extra] as const),
          );
          expect(decodeSandboxes(some, chunkSize)).toEqual(ListPodSandboxResponse.decode(some).items);
          expect(decodeContainers(others, chunkSize)).toEqual(
            ListContainersResponse.decode(others).containers,
          );
        },
      ),
    );
  });

  it("reads numbers of any length that protobuf allows", () => {
    const negative = [0x0a, 0x0b, 0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    expect(decodeContainers(Uint8Array.from(negative))).toMatchObject([{ state: 0xffff_ffff }]);
  });

  it("refuses a list that breaks off anywhere but between two items", () => {
    const items = [1n, 2n ** 62n].map((createdAt) =>
      Container.encode(Container.fromPartial({ id: "one", metadata: { name: "two" }, createdAt })).finish(),
    );
    const whole = list(items.map((item) => [item, [[0x42, 2, 1, 1]]] as const));
    const boundaries = [0, items[0]!.length + 6, whole.length];
    for (let length = 0; length <= whole.length; length++) {
      const part = whole.subarray(0, length);
      if (boundaries.includes(length))
        expect(decodeContainers(part)).toHaveLength(boundaries.indexOf(length));
      else expect(() => decodeContainers(part), `${length} bytes`).toThrow(RangeError);
    }
  });

  it("reads the messages of a stream one after another, and refuses what is too large", () => {
    const item = list([[Container.encode(Container.fromPartial({ id: "one" })).finish(), []]]);
    const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, item.length]), item]);
    const readerOf = (maxBytes: number, maxItems: number) =>
      new ListItems({ maxBytes, maxItems, read: readContainer });
    const whole = readerOf(100, 3);
    for (const byte of Buffer.concat([frame, frame, Buffer.alloc(5), frame])) whole.push(Buffer.from([byte]));
    expect(whole.end()).toMatchObject([{ id: "one" }, { id: "one" }, { id: "one" }]);
    expect(() => readerOf(100, 2).push(Buffer.concat([frame, frame, frame]))).toThrow(/more than 2 items/);
    expect(() => readerOf(5, 3).push(frame)).toThrow(/size limit/);
    const compressed = Buffer.from(frame);
    compressed[0] = 1;
    expect(() => readerOf(100, 3).push(compressed)).toThrow(/compressed/);
    const cut = readerOf(100, 3);
    cut.push(frame.subarray(0, 3));
    expect(() => cut.end()).toThrow(RangeError);
  });

  it.each([
    ["a field number 0", [0x02, 0x00]],
    ["zeros", [0, 0, 0, 0]],
    ["a group", [0x0b, 0x0c]],
    ["an unknown wire type", [0x0f]],
    ["an item longer than the list", [0x0a, 0x7f, 0x00]],
    ["an endless number", [0x08, ...new Array<number>(11).fill(0xff)]],
    ["a text longer than its item", [0x0a, 0x03, 0x0a, 0x05, 0x61, 0x61, 0x61, 0x61, 0x61]],
    ["a nested message longer than its item", [0x0a, 0x02, 0x1a, 0x04, 0x0a, 0x02, 0x61, 0x61]],
    ["a fixed number that breaks off", [0x09, 0x00]],
  ])("refuses %s", (_, bytes) => {
    expect(() => decodeContainers(Uint8Array.from(bytes))).toThrow(RangeError);
  });

  it("never does anything but throw a RangeError or give a list", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const decode of [decodeSandboxes, decodeContainers]) {
          try {
            expect(decode(bytes)).toBeInstanceOf(Array);
          } catch (error) {
            if (!(error instanceof RangeError)) throw error;
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
