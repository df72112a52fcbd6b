import { describe, expect, it } from "vitest";
import { TestRounds, testPod } from "../../../agent/src/eviction/testing/rounds.ts";
import { unservedText, whyNoPodText } from "./unserved.ts";

const UNTIL = Date.parse("2026-11-21T21:05:00Z");
const unserved = { reason: "namedNone", message: "named none of 1 pod", since: 0 } as const;
const ownerLimit = { reason: "ownerLimit", pods: 2, until: UNTIL } as const;

it.each([
  [[], "named none of 1 pod"],
  [[ownerLimit], "named none of 1 pod; 2 pods not offered: owner limit until 2026-11-21T21:05:00.000Z"],
  [
    [ownerLimit, { reason: "pending", pods: 1, until: null }],
    "named none of 1 pod; 3 pods not offered: 2 (owner limit until 2026-11-21T21:05:00.000Z), 1 (eviction in progress)",
  ],
] as const)("says which pods the plugin could not choose: %j", (notOffered, text) => {
  expect(unservedText({ ...unserved, notOffered: [...notOffered] })).toBe(text);
});

describe("pressure that lasts after the eviction that the owner may lose", () => {
  const owner = { kind: "ReplicaSet", name: "web", uid: "web" };
  const limits = { windowMs: 600_000, perNode: null, perNamespace: null, perOwner: 1 };
  const why = (others: string[]) => {
    const pods = ["web-1", "web-2", "web-3"].map((name) => testPod(name, { owner }));
    const rounds = new TestRounds([...pods, ...others.map((name) => testPod(name))], { limits });
    const hard = { threshold: { metType: "hard" } } as const;
    const [victim] = rounds.play({ p: { ...hard, top: ["web-1"] } }).victims;
    rounds.accept(victim!.name);
    rounds.pass(60);
    rounds.remove(victim!.name);
    const { thresholds } = rounds.play({ p: { ...hard, top: [] } });
    return whyNoPodText(thresholds[0]!, rounds.now);
  };

  it("names the limit and its end, and what the plugin did with the rest", () => {
    expect(why(["api"])).toMatch(/^named none of 1 pod; 2 pods not offered: owner limit until 1970-/);
  });

  it("names them too where no other pod is left", () => {
    expect(why([])).toMatch(
      /^on hold: no candidate can be evicted now, at most \d+ s left; 2 pods not offered: owner limit until 1970-/,
    );
  });
});
