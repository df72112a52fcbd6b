import { emptyEvictionState } from "@nodekeeper/api/decide";
import { expect, it } from "vitest";
import { countCandidates, listEligibility } from "./candidate-counts.ts";
import { testNode, testPod, testPolicy } from "./testing/rounds.ts";

const NOW = 1_000_000;
const owner = { kind: "ReplicaSet", name: "web", uid: "web" };

it("lists each pod with whether it can be evicted, why not, and until when, and counts the same", () => {
  const limits = { windowMs: 600_000, perNode: null, perNamespace: null, perOwner: 1 };
  const view = {
    pods: [
      testPod("web", { owner }),
      testPod("free"),
      testPod("agent", { owner: { kind: "DaemonSet", name: "agent", uid: "agent" } }),
    ],
    nodeName: testNode,
    policy: testPolicy({ limits }),
    state: {
      ...emptyEvictionState(),
      recent: [
        {
          ...{ uid: "web-0", namespace: "default", ownerUid: "web", plugin: "p", scope: "memory" },
          ...{ others: [], at: NOW - 60_000, releasedAt: NOW - 50_000 },
        },
      ],
    },
    now: NOW,
  };
  const listed = listEligibility(view).map(({ pod, ...rest }) => ({ name: pod.name, ...rest }));
  expect(listed).toEqual([
    {
      name: "agent",
      eviction: "never",
      reason: expect.stringMatching(/^pods of DaemonSets are not evicted/),
    },
    { name: "free", eviction: "now" },
    {
      name: "web",
      eviction: "later",
      reason: expect.stringMatching(/^limit of evictions per owner reached until/),
      until: NOW + 540_000,
    },
  ]);
  expect(countCandidates(view)).toMatchObject({
    pods: 3,
    candidates: 2,
    eligible: 1,
    ineligible: { ownerLimit: 1 },
    excluded: { daemonSet: 1 },
  });
});
