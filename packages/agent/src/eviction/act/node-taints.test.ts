import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LiveTaint } from "../parts.ts";
import { changedTaints, mergeNodeTaints, newTaints, readNodeTaints, taintPatch } from "./node-taints.ts";

const at = Date.UTC(2026, 10, 21, 4, 0, 0, 500);
const desired = (key: string, effect = "NoSchedule") => ({ key: `nodekeeper.dev/${key}`, effect, since: at });

const round = (taints: ReturnType<typeof desired>[], isComplete = true) => ({ desired: taints, isComplete });
const idOf = ({ key, effect }: Pick<LiveTaint, "key" | "effect">) => `${key}:${effect}`;

/** Taints of which these are the agent's, as the annotation shows. */
const live = (taints: LiveTaint[], ...own: LiveTaint[]) => {
  const ids = new Set(own.map(idOf));
  return { taints, own: ids, listed: ids };
};

describe("the list of a Node's taints", () => {
  const foreign = {
    key: "node.kubernetes.io/not-ready",
    effect: "NoExecute",
    timeAdded: "2026-01-01T00:00:00Z",
  };
  const ours = { key: "nodekeeper.dev/Pressure", effect: "NoSchedule", timeAdded: "2026-01-02T00:00:00Z" };

  it.each<[string, LiveTaint[], ReturnType<typeof desired>[], LiveTaint[] | undefined, string[]?]>([
    ["nothing desired, nothing there", [], [], undefined],
    ["nothing desired, foreign there", [foreign], [], undefined],
    ["as desired", [ours, foreign], [desired("Pressure")], undefined],
    [
      "one is added behind the others, with its time",
      [foreign],
      [desired("Pressure")],
      [foreign, { key: "nodekeeper.dev/Pressure", effect: "NoSchedule", timeAdded: "2026-11-21T04:00:00Z" }],
      ["nodekeeper.dev/Pressure:NoSchedule"],
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
      ["nodekeeper.dev/Pressure:NoExecute"],
    ],
    [
      "one of another client with our prefix stays",
      [{ ...ours, key: "nodekeeper.dev/Theirs" }],
      [],
      undefined,
    ],
    [
      "values and fields of others are kept",
      [{ ...foreign, value: "x", later: 1 }, ours],
      [],
      [{ ...foreign, value: "x", later: 1 }],
    ],
  ])("%s", (_name, taints, want, expected, own = []) => {
    const merged = mergeNodeTaints(live(taints, ...taints.filter((taint) => taint === ours)), round(want));
    expect(merged).toEqual(expected && { taints: expected, own });
  });

  it("leaves a taint of another client that equals a desired one, with its value, and takes none for its own", () => {
    const theirs = { ...ours, value: "x" };
    expect(mergeNodeTaints(live([theirs]), round([desired("Pressure")]))).toBeUndefined();
    expect(mergeNodeTaints(live([theirs]), round([]))).toBeUndefined();
  });

  it("loses none while it is not known which are valid", () => {
    expect(mergeNodeTaints(live([ours], ours), round([], false))).toBeUndefined();
    expect(mergeNodeTaints(live([ours], ours), round([desired("Other")], false))).toMatchObject({
      taints: [ours, { key: "nodekeeper.dev/Other" }],
      own: ["nodekeeper.dev/Other:NoSchedule", "nodekeeper.dev/Pressure:NoSchedule"],
    });
  });

  it("takes a foreign value off ours, and names what it restored", () => {
    const changed = { ...ours, value: "by-hand" };
    const before = [{ ...foreign, value: "x" }, changed];
    const after = mergeNodeTaints(live(before, changed), round([desired("Pressure")]))!.taints;
    expect(after).toEqual([{ ...foreign, value: "x" }, ours]);
    expect(changedTaints([{ ...foreign, value: "x" }, changed], after)).toEqual([idOf(ours)]);
    expect(changedTaints([foreign, ours], [foreign, ours])).toEqual([]);
  });

  it("is no longer listed when another client removed ours and it is not desired", () => {
    expect(
      mergeNodeTaints({ taints: [foreign], own: new Set(), listed: new Set([idOf(ours)]) }, round([])),
    ).toEqual({
      taints: [foreign],
      own: [],
    });
  });

  it("is listed in the same patch, and the annotation is removed with the last of ours", () => {
    const metadata = { name: "n", uid: "u", resourceVersion: "7" };
    expect(taintPatch({ metadata }, [ours], [idOf(ours)])).toEqual({
      metadata: {
        ...{ resourceVersion: "7", uid: "u" },
        annotations: { "nodekeeper.dev/own-taints": '["nodekeeper.dev/Pressure:NoSchedule"]' },
      },
      spec: { taints: [ours] },
    });
    const annotated = { ...metadata, annotations: { "nodekeeper.dev/own-taints": "[]" } };
    expect(taintPatch({ metadata: annotated }, [], []).metadata).toMatchObject({
      annotations: { "nodekeeper.dev/own-taints": null },
    });
    expect(taintPatch({ metadata }, [], []).metadata).not.toHaveProperty("annotations");
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
  const before = fc.uniqueArray(fc.record({ key, effect, timeAdded: fc.constant("2026-01-01T00:00:00Z") }), {
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

  it("has all that is desired and all of others', nothing else of ours, and is then left alone", () => {
    const rounds = fc.record({ before, want, ownKeys: fc.subarray([...Array(10).keys()]) });
    fc.assert(
      fc.property(rounds, ({ before, want, ownKeys }) => {
        const own = before.filter((_, index) => ownKeys.includes(index));
        const merged = mergeNodeTaints(live(before, ...own), round(want));
        const after = merged?.taints ?? before;
        const ownAfter = merged?.own ?? own.map(idOf).sort();
        const isTheirs = (taint: LiveTaint) =>
          before.includes(taint as never) && !own.includes(taint as never);
        expect(after.filter(isTheirs)).toEqual(before.filter(isTheirs));
        const wanted = want.map(idOf);
        expect(after.map(idOf)).toEqual(expect.arrayContaining(wanted));
        const theirs = before.filter(isTheirs).map(idOf);
        expect(ownAfter).toEqual(wanted.filter((id) => !theirs.includes(id)).sort());
        for (const taint of before) {
          const same = after.find((one) => idOf(one) === idOf(taint));
          if (same) expect(same).toEqual(taint);
        }
        const listed = new Set(ownAfter);
        expect(mergeNodeTaints({ taints: after, own: listed, listed }, round(want))).toBeUndefined();
      }),
    );
  });
});

describe("a taint is the agent's", () => {
  const hot = { key: "nodekeeper.dev/Hot", effect: "NoSchedule", timeAdded: "2026-11-21T04:00:00Z" };
  const id = idOf(hot);
  const annotation = "nodekeeper.dev/own-taints";
  const owned = {
    "f:metadata": { "f:annotations": { [`f:${annotation}`]: {} } },
    "f:spec": { "f:taints": {} },
  };
  const nodeWith = (value: string | undefined, manager = "nodekeeper", more: object = {}) => ({
    metadata: {
      ...(value === undefined ? {} : { annotations: { [annotation]: value } }),
      managedFields: [{ manager, operation: "Update", fieldsV1: owned, ...more }],
    },
    spec: { taints: [hot] },
  });

  it.each<[string, ReturnType<typeof nodeWith>, boolean]>([
    ["by its annotation", nodeWith(JSON.stringify([id])), true],
    [
      "not by an annotation that another client wrote",
      nodeWith(JSON.stringify([id]), "kubectl-annotate"),
      false,
    ],
    [
      "not by an annotation that the status' writer owns",
      nodeWith(JSON.stringify([id]), "nodekeeper", { subresource: "status" }),
      false,
    ],
    ["not if the annotation lists another", nodeWith('["nodekeeper.dev/Hot:NoExecute"]'), false],
    ["not if the annotation is not JSON", nodeWith("{"), false],
    ["not by its prefix", nodeWith(undefined), false],
  ])("%s", (_, node, isOwn) => {
    expect([...readNodeTaints(node, "nodekeeper").own]).toEqual(isOwn ? [id] : []);
  });
});
