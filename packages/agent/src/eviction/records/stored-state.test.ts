import { emptyEvictionState, STATE_VERSION } from "@nodekeeper/api/decide";
import { createLogger } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { evictPod, nodeCondition, type TestPlugin, TestRounds, testPod } from "../testing/rounds.ts";
import { readStoredState } from "./stored-state.ts";

/** Reads a state; the second is what was logged. */
function read(state: unknown) {
  // biome-ignore lint/suspicious/noExplicitAny: log lines have any fields
  const lines: any[] = [];
  const log = createLogger("debug", { write: (line) => void lines.push(JSON.parse(line)) });
  return [readStoredState(typeof state === "string" ? state : JSON.stringify(state), log), lines] as const;
}

/** A state with an item in each list. */
function wholeState() {
  const rounds = new TestRounds([testPod("a"), testPod("b"), testPod("c"), testPod("d")], { burst: 1 });
  const plugin: TestPlugin = {
    pods: ["a", "b"].map((name) => evictPod(name, { force: true })),
    podsCondition: nodeCondition("Squeeze"),
    threshold: { metType: "hard" },
    top: ["stranger"],
  };
  const outcome = { uid: "d", result: "failed", sent: true, message: "no response" } as const;
  rounds.outcomes = [outcome];
  const { state } = rounds.play({ p: plugin, q: { pods: plugin.pods! } });
  const more = { interrupted: state.pending, unrecorded: [outcome] };
  return { ...state, boot: { id: "boot", uptimeMs: 1 }, ...more };
}

describe("a stored state", () => {
  it("is read as it was written", () => {
    const state = wholeState();
    for (const [name, list] of Object.entries(state)) {
      if (Array.isArray(list)) expect([name, list.length > 0]).toEqual([name, true]);
    }
    expect(read(state)).toEqual([state, []]);
  });

  it.each([
    "thresholds",
    "conditions",
    "queue",
    "pending",
    "interrupted",
    "recent",
    "sentBefore",
    "paused",
    "unusable",
    "unrecorded",
    "unserved",
  ] as const)("loses of its %s only the items that lack a field, and that is logged", (list) => {
    const state = wholeState();
    const [good] = state[list] ?? [];
    for (const field of Object.keys(good!)) {
      if (["cause", "others", "scope", "selectedAt", "sent"].includes(field) && list !== "thresholds")
        continue;
      const { [field]: _left, ...lacking } = { ...good } as Record<string, unknown>;
      const [found, lines] = read({
        ...state,
        [list]: [lacking, good, null, "text", { ...good, [field]: {} }, { ...good, [field]: 1e300 }],
      });
      expect([field, found[list]?.length]).toEqual([field, 1]);
      expect(found[list]?.[0]).toEqual(good);
      expect({ ...found, [list]: [] }).toEqual({ ...state, [list]: [] });
      expect(lines).toMatchObject([
        {
          msg: "parts of the stored eviction state are malformed and skipped",
          dropped: expect.arrayContaining([expect.objectContaining({ list })]),
        },
      ]);
    }
  });

  it("keeps the other lists where one is no list", () => {
    const state = wholeState();
    const [found, lines] = read({ ...state, recent: "deleted" });
    expect(found).toEqual({ ...state, recent: [] });
    expect(lines).toHaveLength(1);
  });

  it("of a later version is read as far as it is understood", () => {
    const state = wholeState();
    const later = { ...state, version: STATE_VERSION + 1, novelty: [{}] };
    expect(read(later)).toEqual([state, []]);
  });

  it("that is nothing of the kind is refused", () => {
    for (const text of ["", "[]", "null", "{", "7"]) {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: "corrupt" }));
    }
    expect(read({})).toEqual([emptyEvictionState(), []]);
  });
});
