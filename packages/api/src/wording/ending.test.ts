import { describe, expect, it } from "vitest";
import { testPod } from "../../../agent/src/eviction/testing/rounds.ts";
import type { ContainerExit, NodePod, PodEnding } from "../records/index.ts";
import { endingText } from "./ending.ts";

const START = Date.parse("2026-03-01T12:00:00.000Z");
const DELETED = START + 60_000;

function nodePod(ending: Partial<PodEnding>, changes: Partial<NodePod> = {}): NodePod {
  const { labels: _labels, annotationKeys: _keys, ...pod } = testPod("web");
  return {
    ...{ uid: "web", namespace: "default", name: "web" },
    ...{ seenAt: START, leftAt: null, lastKnownAt: null, pod, exits: [] },
    ending: { deletion: null, disruption: null, phase: "Running", reason: "", message: "", ...ending },
    ...changes,
  };
}

const exit = (name: string, changes: Partial<ContainerExit> = {}): ContainerExit => ({
  ...{ id: name, name, exitCode: 0, reason: "Completed", at: DELETED - 1_000 },
  ...changes,
});
const disruption = (reason: string, message = "") => ({ reason, message, at: START });
const deletion = { requestedAt: DELETED - 30_000, gracePeriodSeconds: 30 };

describe("the text about a pod's end", () => {
  it.each<[string, NodePod, string]>([
    ["is running", nodePod({}), ""],
    [
      "is evicted by the kubelet",
      nodePod(
        {
          ...{ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory. " },
          disruption: disruption("TerminationByKubelet", "The node was low on resource: memory."),
        },
        { exits: [exit("main", { exitCode: 137, reason: "Error" })] },
      ),
      "Evicted by the kubelet: The node was low on resource: memory. Container main exited with code 137.",
    ],
    [
      "is terminating",
      nodePod({ deletion }),
      "Terminating: its deletion was requested at 2026-03-01T12:00:30.000Z.",
    ],
    [
      "has completed",
      nodePod({ phase: "Succeeded" }, { exits: [exit("main")] }),
      "Completed. Container main exited with code 0.",
    ],
    [
      "ran out of memory more often than exits are kept",
      nodePod(
        {},
        {
          exits: Array.from({ length: 20 }, (_, at) =>
            exit("main", { id: `${at}`, exitCode: 137, reason: "OOMKilled", at: START }),
          ),
        },
      ),
      "Container main was OOM-killed at least 20 times, last at 2026-03-01T12:00:00.000Z.",
    ],
    [
      "was deleted by force: what exited before is not how it ended",
      nodePod(
        { deletion: { requestedAt: DELETED, gracePeriodSeconds: 0 } },
        { leftAt: DELETED, exits: [exit("main", { exitCode: 1, at: START })] },
      ),
      "Pod deleted at 2026-03-01T12:01:00.000Z, not by Nodekeeper.",
    ],
    [
      "ran out of memory twice, and was preempted by the kubelet",
      nodePod(
        {
          phase: "Failed",
          reason: "Preempting",
          message: "Preempted in order to admit critical pod",
          deletion,
        },
        {
          leftAt: DELETED,
          exits: [
            exit("main", { id: "1", exitCode: 137, reason: "OOMKilled", at: START }),
            exit("main", { id: "2", exitCode: 137, reason: "OOMKilled", at: START + 5_000 }),
            exit("main", { id: "3", exitCode: 143, reason: "Error" }),
          ],
        },
      ),
      "Pod deleted at 2026-03-01T12:01:00.000Z, not by Nodekeeper. Preempted by the kubelet for a critical pod: Preempted in order to admit critical pod. Container main exited with code 143. Container main was OOM-killed 2 times, last at 2026-03-01T12:00:05.000Z.",
    ],
    [
      "was disrupted by an unknown component",
      nodePod({ disruption: disruption("DeletionByDrainer", "maintenance") }, { leftAt: DELETED }),
      "Pod deleted at 2026-03-01T12:01:00.000Z, not by Nodekeeper. Disrupted (DeletionByDrainer): maintenance.",
    ],
    [
      "had many containers",
      nodePod({ deletion }, { leftAt: DELETED, exits: [..."abcdefg"].map((name) => exit(name)) }),
      `Pod deleted at 2026-03-01T12:01:00.000Z, not by Nodekeeper. ${[..."abcde"].map((name) => `Container ${name} exited with code 0.`).join(" ")} 2 more containers.`,
    ],
    [
      "was deleted while it was not watched",
      nodePod({}, { leftAt: DELETED, lastKnownAt: START }),
      "Pod deleted between 2026-03-01T12:00:00.000Z and 2026-03-01T12:01:00.000Z, not by Nodekeeper.",
    ],
  ])("one that %s", (_name, history, expected) => {
    expect(endingText(history, { by: "other", why: "" })).toBe(expected);
  });
});
