import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Container } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { KnownItems } from "./known-items.ts";
import { readContainer } from "./list-decoding.ts";
import { WireReader } from "./wire-reader.ts";

const id = (letter: string) => letter.repeat(64);
const containerOf = (partial: Partial<Container>) =>
  Container.fromPartial({ id: id("a"), podSandboxId: id("s"), metadata: { name: "app" }, ...partial });
// A label that differs each time, as the order of a map does.
const bytesOf = (container: Container, label = 1) =>
  Buffer.concat([Container.encode(container).finish(), Buffer.from([0x42, 2, label, label])]);

function reading() {
  const known = new KnownItems(readContainer, 56);
  return {
    known,
    read: (bytes: Uint8Array) => known.read(new WireReader(bytes), bytes.length),
  };
}

describe("items that are known", () => {
  it("are the same object for as long as what counts stays the same", () => {
    const { read } = reading();
    const first = read(bytesOf(containerOf({}), 1));
    expect(read(bytesOf(containerOf({}), 2))).toBe(first);
    const changed = read(bytesOf(containerOf({ state: 2 })));
    expect(changed).toMatchObject({ id: id("a"), state: 2 });
    expect(changed).not.toBe(first);
  });

  it("are what the decoder gives, whatever came before", () => {
    const some = fc.record({
      id: fc.constantFrom(id("a"), id("b"), "", "short", `${id("a")}c`),
      podSandboxId: fc.constantFrom(id("s"), id("t")),
      state: fc.integer({ min: 0, max: 4 }),
      createdAt: fc.bigInt({ min: 0n, max: 3n }),
    });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 30 }), (containers) => {
        const { read, known } = reading();
        for (const [at, partial] of containers.entries()) {
          const container = containerOf(partial as Partial<Container>);
          expect(read(bytesOf(container, at & 0x7f))).toEqual(container);
          if (at % 7 === 0) known.listed();
        }
      }),
    );
  });

  // A slice of Node's pool keeps all of it: 64 KiB for each container that started while others used the pool.
  it("keep no more memory than their own bytes", async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const { read, known } = reading();
    collect();
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < 200; at++) {
      read(bytesOf(containerOf({ id: String(at).padEnd(64, "a") })));
      Buffer.allocUnsafe((Buffer.poolSize >>> 1) - 1);
    }
    // V8 frees buffers beside the program.
    await vi.waitFor(() => {
      collect();
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
    }, 10_000);
    known.listed();
  });

  it("still refuse what is broken", () => {
    const { read } = reading();
    const bytes = bytesOf(containerOf({}));
    read(bytes);
    expect(() => read(bytes.subarray(0, bytes.length - 1))).toThrow(RangeError);
  });
});
