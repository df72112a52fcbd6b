import { describe, expect, it } from "vitest";
import { notesOf } from "./archive.ts";
import { MOST_PODS } from "./find-pods.ts";

const podAt = (lastAt: number) => ({
  uid: `u${lastAt}`,
  name: `tick-${lastAt}`,
  node: "n",
  cluster: "",
  lastAt,
});
const pod = { namespace: "default", owner: { kind: "CronJob", name: "tick" } };
const notes = (others: number, isCut: boolean, at?: number) => {
  const query = { pod, at };
  const found = Array.from({ length: others }, (_, n) => podAt(n));
  return notesOf({ query, pod: podAt(5_000), others: found, isCut }, 4_000);
};

describe("notes about the choice of a pod", () => {
  it("count the others", () => {
    expect(notes(12, false)).toEqual([
      expect.stringMatching(/^Other pods of CronJob\/tick, .* and 2 more\.$/),
    ]);
  });

  it("say that there may be more where as many as are read were found", () => {
    const [others, ...rest] = notes(MOST_PODS - 1, true, 1_000);
    expect(others).toMatch(/ and at least 989 more\.$/);
    expect(rest).toEqual([
      "It was first seen at 1970-01-01T00:00:04.000Z, after 1970-01-01T00:00:01.000Z.",
      "Only the last 1000 pods were read: an earlier one may be meant.",
    ]);
  });
});
