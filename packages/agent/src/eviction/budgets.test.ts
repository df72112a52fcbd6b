import { emptyEvictionState, type RecentEviction, type Refusal } from "@nodekeeper/api/decide";
import { describe, expect, it } from "vitest";
import { budgetsOf } from "./budgets.ts";
import { countCandidates } from "./candidate-counts.ts";
import { testNode, testPod, testPolicy } from "./testing/rounds.ts";

const MINUTE = 60_000;
const now = 100 * MINUTE;
const owner = { kind: "ReplicaSet", name: "web", uid: "rs" };
const limits = { windowMs: 10 * MINUTE, perNode: 3, perNamespace: null, perOwner: 2 };
const policy = testPolicy({ limits });

const recent = (uid: string, minutesAgo: number, changes: Partial<RecentEviction> = {}): RecentEviction => ({
  uid,
  namespace: "default",
  ownerUid: null,
  plugin: "p",
  scope: "",
  at: now - minutesAgo * MINUTE,
  releasedAt: null,
  ...changes,
});

const common = {
  lastRoundAt: now,
  policy,
  thresholds: [],
  refusals: [],
  pods: [testPod("a", { owner }), testPod("b")],
  formerPod: () => undefined,
  now,
};

describe("budgets", () => {
  it("count evictions within the window, and have the time at which one more is allowed", () => {
    const evictions = [
      recent("x", 12),
      recent("y", 9, { ownerUid: "rs" }),
      recent("z", 4, { ownerUid: "rs" }),
    ];
    const state = { ...emptyEvictionState(), at: now, recent: evictions };
    const two = budgetsOf({ ...common, state });
    expect(two.node).toEqual({ limit: 3, used: 2, freeAt: null });
    expect(two.namespaces).toEqual([{ namespace: "default", limit: null, used: 2, freeAt: null }]);
    expect(two.owners).toEqual([{ namespace: "default", owner, limit: 2, used: 2, freeAt: now + MINUTE }]);
    const three = budgetsOf({ ...common, state: { ...state, recent: [...evictions, recent("w", 1)] } });
    expect(three.node).toEqual({ limit: 3, used: 3, freeAt: now + MINUTE });
  });

  it("have an owner whose pods are all deleted from the history, or its UID", () => {
    const state = { ...emptyEvictionState(), recent: [recent("x", 1, { ownerUid: "old" })] };
    const ownerOf = (input: object) => budgetsOf({ ...common, state, ...input }).owners[0]!.owner;
    const old = { kind: "Job", name: "batch", uid: "old" };
    expect(ownerOf({ formerPod: (uid: string) => (uid === "x" ? { owner: old } : undefined) })).toEqual(old);
    expect(ownerOf({})).toEqual({ kind: "", name: "", uid: "old" });
  });

  it("have the pods that limits refused in the last round, each once, with when the limit allows one more", () => {
    const state = {
      ...emptyEvictionState(),
      recent: [recent("y", 9, { ownerUid: "rs" }), recent("z", 4, { ownerUid: "rs" })],
    };
    const refusal = (uid: string, reason: Refusal["reason"], plugin = "p") => ({
      ...{ uid, namespace: "default", name: uid, plugin, reason, message: "" },
    });
    const refusals = [
      refusal("a", "ownerLimit"),
      refusal("a", "ownerLimit", "q"),
      // Not by a limit, by one that is reached no more, and of a pod that is deleted.
      refusal("a", "cooldown"),
      refusal("b", "nodeLimit"),
      refusal("c", "ownerLimit"),
    ];
    expect(budgetsOf({ ...common, state, refusals }).limited).toEqual([
      { uid: "a", namespace: "default", name: "a", plugin: "q", reason: "ownerLimit", until: now + MINUTE },
    ]);
    expect(budgetsOf({ ...common, state, refusals, now: now + 2 * MINUTE }).limited).toEqual([]);
  });

  it("have what is paused now with its PodDisruptionBudget, and evictions by their stage", () => {
    const budget = { name: "default/web", currentHealthy: 2, desiredHealthy: 2 };
    const pending = {
      ...{ uid: "a", namespace: "default", name: "a", plugin: "p", scope: "s", kind: "forced" as const },
      ...{ source: "threshold" as const, reason: "r", gracePeriodSeconds: null, since: now - 5 },
      ...{ sendingAt: null, acceptedAt: null, deadline: null },
    };
    const state = {
      ...emptyEvictionState(),
      paused: [
        { uid: "b", until: now + 5, reason: "429", budget },
        { uid: "a", until: now, reason: "over", budget: null },
      ],
      pending: [
        pending,
        { ...pending, uid: "y", acceptedAt: now - 1, deadline: now + 9, stopsContainers: true },
        { ...pending, uid: "z", acceptedAt: now - 1, deadline: now + 9 },
      ],
      interrupted: [{ ...pending, uid: "i" }],
    };
    const found = budgetsOf({ ...common, state, policy: { ...policy, burst: -1 } });
    expect(found.burst).toBeNull();
    expect(found.paused).toEqual([
      { uid: "b", namespace: "default", name: "b", until: now + 5, reason: "429", budget },
    ]);
    expect(found.pending.map(({ uid, stage }) => [uid, stage])).toEqual([
      ["i", "interrupted"],
      ["a", "sending"],
      ["y", "stopping"],
      ["z", "terminating"],
    ]);
  });
});

it("counts pods by QoS, and by why they can't be evicted", () => {
  const pods = [
    testPod("a"),
    testPod("b", { qosClass: "Guaranteed", qosLevel: "dedicated_cores" }),
    testPod("c"),
    testPod("static", { isStatic: true }),
    testPod("system", { qosLevel: "system_cores" }),
    testPod("daemon", { owner: { kind: "DaemonSet", name: "d", uid: "d" } }),
  ];
  const paused = [
    { uid: "b", until: now + 1, reason: "", budget: null },
    { uid: "c", until: now - 1, reason: "", budget: null },
  ];
  expect(
    countCandidates({ pods, nodeName: testNode, policy, state: { ...emptyEvictionState(), paused }, now }),
  ).toEqual({
    pods: 6,
    mix: [
      { qosLevel: "dedicated_cores", qosClass: "Guaranteed", pods: 1 },
      { qosLevel: "shared_cores", qosClass: "BestEffort", pods: 4 },
      { qosLevel: "system_cores", qosClass: "BestEffort", pods: 1 },
    ],
    candidates: 3,
    eligible: 2,
    ineligible: { paused: 1 },
    excluded: { daemonSet: 1, static: 1, systemQos: 1 },
  });
});
