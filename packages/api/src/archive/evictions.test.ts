import { describe, expect, it } from "vitest";
import { countEvictions, evictionsOf, isEvicted } from "./evictions.ts";

let nextId = 1;

/** A row of a decision about the pod u1 on node n1, as the store returns it. */
function decision(changes: Record<string, string>): Record<string, string> {
  return {
    ...{ "nodekeeper.record.id": String(nextId++), "k8s.node.name": "n1", "k8s.pod.uid": "u1" },
    ...{ "k8s.namespace.name": "default", "k8s.pod.name": "web", ...changes },
  };
}
const selected = (at: number, changes: Record<string, string> = {}) =>
  decision({
    ...{ at: String(at), "victim.plugin": "p", "victim.scope": "memory", "victim.reason": "low" },
    ...changes,
  });
const ended = (selectedAt: number, result: string, changes: Record<string, string> = {}) =>
  decision({
    ...{ at: String(selectedAt + 9), "outcome.selectedAt": String(selectedAt), "outcome.result": result },
    ...{ "outcome.message": "", "outcome.sent": "true", ...changes },
  });
const resultsOf = (rows: Record<string, string>[], since = 0) =>
  evictionsOf(rows, since).map(({ at, outcome }) => [at, outcome?.result]);

describe("evictions from decisions", () => {
  it("have the outcome of their own selection, whatever the order, and each record once", () => {
    const rows = [selected(100), selected(200), ended(200, "terminated"), ended(100, "failed")];
    expect(resultsOf([...rows, ...rows])).toEqual([
      [100, "failed"],
      [200, "terminated"],
    ]);
    expect(resultsOf(rows.reverse())).toEqual([
      [100, "failed"],
      [200, "terminated"],
    ]);
  });

  it("have the outcome that is final, also if the pod was overdue before", () => {
    expect(resultsOf([selected(100), ended(100, "terminated"), ended(100, "overdue")])).toEqual([
      [100, "terminated"],
    ]);
  });

  it("have the end of an eviction in the round that selected the pod again", () => {
    const again = selected(200, { "outcome.result": "failed", "outcome.selectedAt": "100" });
    expect(resultsOf([selected(100), again])).toEqual([
      [100, "failed"],
      [200, undefined],
    ]);
  });

  it("are there without their selection, and not if they were selected before the time", () => {
    const [found] = evictionsOf([ended(100, "terminated")], 50);
    expect(found).toMatchObject({ at: 100, plugin: "", reason: "", outcome: { result: "terminated" } });
    expect(resultsOf([ended(100, "terminated")], 101)).toEqual([]);
  });

  it("belong to a Deployment only if the pod's label proves it", () => {
    const owner = { "nodekeeper.pod.owner": "ReplicaSet/web-5d4f" };
    const ownerOf = (labels: Record<string, string>) =>
      evictionsOf([selected(1, { ...owner, ...labels })], 0)[0]!.owner;
    expect(ownerOf({ "pod.labels.pod-template-hash": "5d4f" })).toBe("Deployment/web");
    expect(ownerOf({ "pod.labels.pod-template-hash": "other" })).toBe("ReplicaSet/web-5d4f");
    expect(ownerOf({})).toBe("ReplicaSet/web-5d4f");
  });

  it.each<[string, Record<string, string>, string]>([
    ["no request was sent", { "outcome.sent": "false" }, "notEvicted"],
    ["a request was not answered", { "outcome.sent": "true" }, "unknown"],
    ["a request was accepted", { "outcome.sent": "true", "outcome.acceptedAt": "120" }, "notEvicted"],
    ["an earlier request was not answered", { "outcome.sentBefore": "true" }, "unknown"],
  ])("that failed: if %s", (_, fields, kind) => {
    const [failed] = evictionsOf([selected(100), ended(100, "failed", fields)], 0);
    expect(isEvicted(failed!)).toBe(kind);
  });

  it("are counted as evicted only if the agent's request ended the pod", () => {
    const pods = ["terminated", "terminated", "superseded", "failed", "unknown", "overdue"];
    const rows = pods.flatMap((result, at) => {
      const pod = { "k8s.pod.uid": `u${at}`, "k8s.node.name": at < 3 ? "n1" : "n2" };
      const known: Record<string, Record<string, string>> = {
        1: { "outcome.sent": "false" },
        3: { "outcome.sent": "true", "outcome.acceptedAt": "4" },
      };
      return [selected(at + 1, pod), ended(at + 1, result, { ...pod, ...known[at] })];
    });
    const all = evictionsOf([...rows, selected(9, { "k8s.pod.uid": "open" })], 0);
    expect(countEvictions(all, ["node"])).toEqual([
      { values: ["n1"], evicted: 1, notEvicted: 2, unknown: 1 },
      { values: ["n2"], evicted: 0, notEvicted: 1, unknown: 2 },
    ]);
    expect(countEvictions(all, ["plugin", "scope"])).toMatchObject([{ values: ["p", "memory"], evicted: 1 }]);
  });
});
