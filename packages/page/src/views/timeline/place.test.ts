import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readAddress } from "../../address.ts";
import { placeAddress, readPlace, type Selection } from "./place.ts";

const back = (place: Parameters<typeof placeAddress>[0]) => readPlace(readAddress(placeAddress(place)).query);

describe("the address of a place on the timeline", () => {
  it("is read as it was written", () => {
    const name = fc.string({ minLength: 1 }).map((text) => text.replaceAll("\n", " "));
    const selection: fc.Arbitrary<Selection | undefined> = fc.oneof(
      fc.constant(undefined),
      fc.record({ kind: fc.constant("mark" as const), id: fc.nat() }),
      fc.record({ kind: fc.constant("pod" as const), uid: name }),
      fc.record({ kind: fc.constant("container" as const), uid: name, id: name }),
      fc.record({
        kind: fc.constant("reading" as const),
        plugin: name,
        scope: name,
        at: fc.nat().map((at) => at + 1),
      }),
    );
    const range = fc.option(
      fc
        .tuple(fc.integer({ min: 1 }), fc.integer({ min: 2_000, max: 86_400_000 }))
        .map(([from, width]) => ({ from, to: from + width })),
      { nil: undefined },
    );
    fc.assert(
      fc.property(fc.record({ range, selection }), (place) => {
        expect(back(place)).toEqual(place);
      }),
    );
  });

  it("leaves out what can't be", () => {
    for (const query of [
      "from=5&to=1",
      "from=-5&to=9999999",
      "from=1&to=99999999999999",
      "from=a&to=b",
      "at=mark:x",
      "at=pod:",
      "at=:",
    ])
      expect(readPlace(new URLSearchParams(query))).toEqual({ range: undefined, selection: undefined });
  });
});
