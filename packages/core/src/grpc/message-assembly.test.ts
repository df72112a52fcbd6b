import fc from "fast-check";
import { expect, it } from "vitest";
import { MessageAssembly } from "./message-assembly.ts";
import { MessageBuffers } from "./message-buffers.ts";

function framed(message: Uint8Array): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

it("messages arrive whole however they are cut, also in memory that was given back", () => {
  const message = fc
    .tuple(fc.nat(255), fc.oneof(fc.nat(40), fc.integer({ min: 60_000, max: 300_000 })))
    .map(([byte, length]) => Buffer.alloc(length, byte));
  const cuts = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 6 }), cuts, fc.boolean(), (messages, sizes, givesBack) => {
      const buffers = new MessageBuffers();
      const assembly = new MessageAssembly(buffers, () => {});
      const body = Buffer.concat(messages.map(framed));
      const arrived: Buffer[] = [];
      for (let at = 0, turn = 0; at < body.length; turn++) {
        const end = at + sizes[turn % sizes.length]!;
        for (const bytes of assembly.add(body.subarray(at, end))) {
          arrived.push(Buffer.from(bytes));
          if (givesBack) buffers.give(bytes.fill(0xaa));
        }
        at = end;
      }
      expect(arrived.length).toBe(messages.length);
      for (const [at, bytes] of arrived.entries()) expect(Buffer.compare(bytes, messages[at]!)).toBe(0);
      expect(assembly.isPartial).toBe(false);
    }),
    { numRuns: 40 },
  );
});

it("memory that was given back serves the next message that is about as large", () => {
  const buffers = new MessageBuffers();
  const assembly = new MessageAssembly(buffers, () => {});
  const [first] = assembly.add(framed(Buffer.alloc(200_000, 1)));
  const [second] = assembly.add(framed(Buffer.alloc(200_000, 2)));
  buffers.give(first!);
  const [third] = assembly.add(framed(Buffer.alloc(201_000, 3)));
  expect(third!.buffer).toBe(first!.buffer);
  expect(second![0]).toBe(2);
  buffers.give(third!);
  const [small] = assembly.add(framed(Buffer.alloc(50_000, 4)));
  expect(small!.buffer).not.toBe(third!.buffer);
});

it("a message that is announced and does not come takes no memory of its size", () => {
  const allocated: number[] = [];
  const buffers = new MessageBuffers();
  const allocate = buffers.allocate.bind(buffers);
  buffers.allocate = (size) => {
    allocated.push(size);
    return allocate(size);
  };
  const assembly = new MessageAssembly(buffers, () => {});
  const header = Buffer.from([0, 0x3f, 0, 0, 0]);
  expect([...assembly.add(Buffer.concat([header, Buffer.alloc(1_000)]))]).toEqual([]);
  expect(assembly.isPartial).toBe(true);
  expect(Math.max(...allocated)).toBeLessThanOrEqual(64 * 1024);
});

it("a message that is refused is refused by its header", () => {
  const assembly = new MessageAssembly(new MessageBuffers(), (isCompressed, length) => {
    if (isCompressed || length > 1_000) throw new Error(`refused: ${length}`);
  });
  expect(() => [...assembly.add(framed(Buffer.alloc(2_000)).subarray(0, 5))]).toThrow("refused: 2000");
});
