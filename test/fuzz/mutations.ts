import fc from "fast-check";

interface Mutation {
  kind: "flip" | "insert" | "remove" | "repeat" | "truncate";
  /** Where, as a share of the length. */
  at: number;
  length: number;
  bytes: Uint8Array;
}

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("flip", "insert", "remove", "repeat", "truncate"),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 1, max: 64 }),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 8 }),
    // Lengths and numbers at their limits, as varints.
    fc.constantFrom(
      Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f),
      Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
      Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80),
    ),
  ),
});

/** The same bytes, and with some of them changed. */
export function mutated(inputs: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  return fc
    .tuple(inputs, fc.array(mutation, { maxLength: 6 }))
    .map(([bytes, mutations]) => mutations.reduce(apply, bytes));
}

function apply(input: Uint8Array, { kind, at, length, bytes }: Mutation): Uint8Array {
  const start = Math.floor(at * input.length);
  const [before, after] = [input.subarray(0, start), input.subarray(start)];
  switch (kind) {
    case "flip":
      return Buffer.concat([before, bytes, after.subarray(bytes.length)]);
    case "insert":
      return Buffer.concat([before, bytes, after]);
    case "remove":
      return Buffer.concat([before, after.subarray(length)]);
    case "repeat":
      return Buffer.concat([before, ...Array<Uint8Array>(length).fill(after.subarray(0, 64)), after]);
    case "truncate":
      return before;
  }
}
