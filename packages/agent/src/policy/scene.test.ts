import type { RoundRecord } from "@nodekeeper/api/records";
import { describe, expect, it } from "vitest";
import { never } from "../intree/eviction/testing/parts.ts";
import { readSceneFile, sceneOfFile } from "./scene-file.ts";
import { sceneOfRecord } from "./scene-of-record.ts";
import { belowMinimum, policyOf } from "./testing/policies.ts";
import { tryPolicy } from "./try-policy.ts";

const at = 1_700_000_000_000;
const text = `
node:
  memory: { total: 16Gi, available: 90Mi }
pods:
  - name: web
    namespace: shop
    labels: { app: web }
    annotationKeys: [example.com/a]
    priority: 100
    requests: { cpu: 500m, memory: 1Gi }
    usage: { memory: 2Gi, rss: 1.5Gi }
    age: 2h
    ownerKind: ReplicaSet
  - { name: job, qosLevel: reclaimed_cores, age: 90 }
  - { name: db, qosClass: Guaranteed, priority: 900, usage: { rss: 1Gi } }
`;
const lowMemory = `${belowMinimum}
minimumReclaim: quantity("50Mi")`;

describe("a described node", () => {
  it("is read with quantities and durations, and what it leaves out is not known", async () => {
    const scene = sceneOfFile(readSceneFile("node.yaml", text), at);
    const policy = policyOf(
      `${lowMemory}\npods: pod.qosClass != "Guaranteed"\nrank: [pod.usage.rss - pod.requests.memory]`,
    );
    expect(await tryPolicy(policy, scene, false, never)).toEqual({
      policy: "low",
      type: "hard",
      state: "met",
      isHeld: false,
      observed: 90 * 2 ** 20,
      operator: "lessThan",
      threshold: 100 * 2 ** 20,
      gracePeriodMs: 0,
      problems: [],
      rank: ["pod.usage.rss - pod.requests.memory"],
      ranking: [{ uid: "shop/web", namespace: "shop", name: "web", values: [2 ** 29] }],
      excluded: [
        {
          uid: "default/db",
          namespace: "default",
          name: "db",
          kind: "filtered",
          why: "excluded by the filter",
        },
        {
          uid: "default/job",
          namespace: "default",
          name: "job",
          kind: "unknown",
          why: "pod.usage.rss is not known",
        },
      ],
    });
  });

  it.each([
    ['pod.labels.app == "web" && "example.com/a" in pod.annotationKeys', ["shop/web"]],
    ["pod.requests.cpu == 0.5", ["shop/web"]],
    ["pod.age >= 7200", ["shop/web"]],
    ["pod.age == 90", ["default/job"]],
    ['pod.qosLevel == "reclaimed_cores" && pod.qosClass == "BestEffort"', ["default/job"]],
    ['pod.ownerKind == "ReplicaSet" && pod.qosClass == "Burstable"', ["shop/web"]],
    ["pod.priority > 800", ["default/db"]],
  ])("%s takes %j", async (filter, expected) => {
    const scene = sceneOfFile(readSceneFile("node.yaml", text), at);
    const policy = policyOf(`name: a\ntype: soft\nwhen: true\npods: '${filter}'\nrank: [1]`);
    const { ranking } = await tryPolicy(policy, scene, false, never);
    expect(ranking.map(({ uid }) => uid)).toEqual(expected);
  });

  it("may be JSON", () => {
    const { node, pods } = readSceneFile("x", '{"node": {"pids": {"max": 5}}, "pods": [{"name": "a"}]}');
    expect([node, pods]).toEqual([{ pids: { max: 5 } }, [{ name: "a", namespace: "default" }]]);
  });

  it.each([
    ["node: { disk: {} }", 'node.yaml:1:9: node: there is no field "disk"; there are: memory, psi'],
    ["node: { memory: { total: much } }", 'node.yaml:1:26: node.memory.total: "much" is not a quantity'],
    ["node: { memory: 5 }", "node.yaml:1:17: node.memory: must be a mapping"],
    ["pods: [{ namespace: a }]", "node.yaml:1:8: pods[0].name: is missing; it must be a string"],
    ["pods: [{ name: a, labels: { b: 1 } }]", "node.yaml:1:32: pods[0].labels: must contain only strings"],
    ["pods: [{ name: a, age: old }]", "node.yaml:1:24: pods[0].age: "],
    ["pods: {}", "node.yaml:1:7: pods: must be a list"],
    ["pods: [", "node.yaml:1:"],
    ["nodes: {}", 'node.yaml:1:1: there is no field "nodes"; there are: node, pods'],
  ])("%s is refused with its place", (wrong, message) => {
    expect(() => readSceneFile("node.yaml", wrong)).toThrow(message);
  });

  it("is refused where two pods have one name", () => {
    const twice = readSceneFile("x", "pods: [{ name: a }, { name: a }]");
    expect(() => sceneOfFile(twice, at)).toThrow("two pods have the same namespace and name");
  });
});

describe("the minimum reclaim", () => {
  it.each([
    [false, "notMet", false],
    [true, "met", true],
  ])("where there was pressure before: %s", async (wasMet, state, isHeld) => {
    const scene = sceneOfFile(readSceneFile("x", "node: { memory: { available: 120Mi } }"), at);
    const trial = await tryPolicy(policyOf(`${lowMemory}\nrank: [1]`), scene, wasMet, never);
    expect(trial).toMatchObject({ state, isHeld, observed: 120 * 2 ** 20 });
  });
});

describe("a recorded round", () => {
  const pod = (name: string, priority = 0) => ({
    uid: `${name}-uid`,
    namespace: "default",
    name,
    nodeName: "node-1",
    phase: "Running",
    labels: {},
    annotationKeys: [],
    owner: null,
    qosLevel: "shared_cores",
    qosClass: "Burstable",
    priority,
    startTime: at - 60_000,
  });
  const record = {
    id: 7,
    input: { now: at, pods: [pod("a", 5), pod("b", 9), pod("kube-proxy")] },
    decision: {
      exclusions: [
        { uid: "kube-proxy-uid", namespace: "default", name: "kube-proxy", reason: "daemonSet", detail: "" },
      ],
    },
  } as unknown as RoundRecord;

  it("has its pods, and no readings by itself", async () => {
    const trial = await tryPolicy(
      policyOf(`${lowMemory}\nrank: [-pod.priority, pod.age]`),
      sceneOfRecord(record, undefined),
      false,
      never,
    );
    expect(trial.state).toBe("unknown");
    expect(trial.problems).toEqual(["node.memory.available: not set in the file"]);
    expect(trial.ranking.map(({ uid, values }) => [uid, values])).toEqual([
      ["a-uid", [-5, 60]],
      ["b-uid", [-9, 60]],
    ]);
    expect(trial.excluded).toEqual([
      {
        uid: "kube-proxy-uid",
        namespace: "default",
        name: "kube-proxy",
        kind: "notCandidate",
        why: "not a candidate: daemonSet",
      },
    ]);
  });

  it("takes readings, usage and requests from a described node", async () => {
    const readings = readSceneFile(
      "x",
      "node: { memory: { available: 1Mi } }\npods: [{ name: b, requests: { memory: 1k }, usage: { rss: 3k } }]",
    );
    const scene = sceneOfRecord(record, readings);
    const policy = policyOf(`${lowMemory}\nrank: [pod.usage.rss - pod.requests.memory]`);
    const trial = await tryPolicy(policy, scene, false, never);
    expect(trial).toMatchObject({ state: "met", ranking: [{ uid: "b-uid", values: [2000] }] });
    const requests = await tryPolicy(
      policyOf(`${lowMemory}\nrank: [pod.requests.memory]`),
      scene,
      false,
      never,
    );
    expect(requests.excluded[0]).toMatchObject({
      uid: "a-uid",
      why: "its requests can't be read: no file has them",
    });
  });

  it("is refused where a pod in it is none", () => {
    const broken = { ...record, input: { ...record.input, pods: [{ uid: "x" }] } } as unknown as RoundRecord;
    expect(() => sceneOfRecord(broken, undefined)).toThrow("round 7 has a malformed pod");
  });
});
