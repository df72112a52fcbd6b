import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LiveTaint, mergeNodeTaints, newTaints, restoredTaints } from "./node-taints.ts";

const at = Date.UTC(2026, 10, 21, 4, 0, 0, 500);
const desired = (key: string, effect = "NoSchedule") => ({ key: `nodekeeper.dev/${key}`, effect, since: at });

const own = (taints: ReturnType<typeof desired>[], isComplete = true) => ({
  desired: taints,
  prefix: "nodekeeper.dev",
  isComplete,
});

describe("the list of a Node's taints", () => {
  const foreign = {
    key: "node.kubernetes.io/not-ready",
    effect: "NoExecute",
    timeAdded: "2026-01-01T00:00:00Z",
  };
  const ours = { key: "nodekeeper.dev/Pressure", effect: "NoSchedule", timeAdded: "2026-01-02T00:00:00Z" };

  it.each<[string, LiveTaint[], ReturnType<typeof desired>[], LiveTaint[] | undefined]>([
    ["nothing desired, nothing there", [], [], undefined],
    ["nothing desired, foreign there", [foreign], [], undefined],
    ["as desired", [ours, foreign], [desired("Pressure")], undefined],
    [
      "one is added behind the others, with its time",
      [foreign],
      [desired("Pressure")],
      [foreign, { key: "nodekeeper.dev/Pressure", effect: "NoSchedule", timeAdded: "2026-11-21T04:00:00Z" }],
    ],
    [
      "ours goes, others stay in their order",
      [foreign, ours, { key: "a", effect: "NoSchedule" }],
      [],
      [foreign, { key: "a", effect: "NoSchedule" }],
    ],
    [
      "another effect is another taint",
      [ours],
      [desired("Pressure", "NoExecute")],
      [{ key: "nodekeeper.dev/Pressure", effect: "NoExecute", timeAdded: "2026-11-21T04:00:00Z" }],
    ],
    // katalyst's ownership test has no slash and takes these for its own.
    [
      "a key that only begins like ours is foreign",
      [{ key: "nodekeeper.dev.example/x", effect: "NoSchedule" }],
      [],
      undefined,
    ],
    ["so is our prefix alone", [{ key: "nodekeeper.dev", effect: "NoSchedule" }], [], undefined],
    [
      "values and fields of others are kept",
      [{ ...foreign, value: "x", later: 1 }, ours],
      [],
      [{ ...foreign, value: "x", later: 1 }],
    ],
  ])("%s", (_name, live, want, expected) => {
    expect(mergeNodeTaints(live, own(want))).toEqual(expected);
  });

  it("loses none while it is not known which are valid", () => {
    expect(mergeNodeTaints([ours], own([], false))).toBeUndefined();
    expect(mergeNodeTaints([ours], own([desired("Other")], false))).toMatchObject([
      ours,
      { key: "nodekeeper.dev/Other" },
    ]);
  });

  it("takes a foreign value off ours, and names what it restored", () => {
    const changed = { ...ours, value: "by-hand" };
    const after = mergeNodeTaints([{ ...foreign, value: "x" }, changed], own([desired("Pressure")]))!;
    expect(after).toEqual([{ ...foreign, value: "x" }, ours]);
    expect(restoredTaints([foreign, changed], after)).toEqual(["nodekeeper.dev/Pressure:NoSchedule"]);
    expect(restoredTaints([foreign, ours], [foreign, ours])).toEqual([]);
  });

  it("finds new taints by key and effect", () => {
    expect(newTaints([foreign], [foreign, ours])).toEqual(["nodekeeper.dev/Pressure:NoSchedule"]);
  });

  const effect = fc.constantFrom("NoSchedule", "NoExecute");
  const key = fc.constantFrom(
    "nodekeeper.dev/a",
    "nodekeeper.dev/b",
    "nodekeeper.dev",
    "nodekeeper.devil/a",
    "x/a",
  );
  const live = fc.uniqueArray(fc.record({ key, effect, timeAdded: fc.constant("2026-01-01T00:00:00Z") }), {
    selector: (taint) => `${taint.key}:${taint.effect}`,
  });
  const want = fc.uniqueArray(
    fc.record({
      key: fc.constantFrom("nodekeeper.dev/a", "nodekeeper.dev/b"),
      effect,
      since: fc.constant(at),
    }),
    { selector: (taint) => `${taint.key}:${taint.effect}` },
  );

  it("has exactly the desired of ours and all of the others', and is then left alone", () => {
    fc.assert(
      fc.property(live, want, (before, taints) => {
        const after = mergeNodeTaints(before, own(taints)) ?? before;
        const isOurs = (taint: LiveTaint) => taint.key!.startsWith("nodekeeper.dev/");
        const ids = (list: readonly Pick<LiveTaint, "key" | "effect">[]) =>
          list.map((taint) => `${taint.key}:${taint.effect}`);
        expect(after.filter((taint) => !isOurs(taint))).toEqual(before.filter((taint) => !isOurs(taint)));
        expect(ids(after.filter(isOurs)).sort()).toEqual(ids(taints).sort());
        for (const taint of before) {
          const same = after.find((one) => one.key === taint.key && one.effect === taint.effect);
          if (same) expect(same).toEqual(taint);
        }
        expect(mergeNodeTaints(after, own(taints))).toBeUndefined();
      }),
    );
  });
});
