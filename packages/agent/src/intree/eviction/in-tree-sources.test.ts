import { inTreeEvictionNames } from "@nodekeeper/api/settings";
import type { KubeObject } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import { customNodeResourceAllocatable } from "./allocatable.ts";
import { inTreeEvictionSources, knownEvictionPlugins } from "./in-tree-sources.ts";
import { never, TestMachine, testPod } from "./testing/parts.ts";

const system = "system-memory-pressure-eviction-plugin";
const numa = "numa-memory-pressure-eviction-plugin";
const rss = "rss-overuse-eviction-plugin";
const reclaimed = "reclaimed-resource-pressure-eviction-plugin";

describe("enabled plugins", () => {
  const make = (patterns: string[]) => {
    return inTreeEvictionSources(patterns, new TestMachine().parts(), () => defaultInTreeEvictionSettings);
  };

  it.each([
    [["*"], [system, numa, reclaimed]],
    [
      ["*", rss, `-${numa}`],
      [system, reclaimed, rss],
    ],
    [[rss], [rss]],
    [[], []],
  ])("%j", (patterns, names) => expect(make(patterns).map(({ name }) => name)).toEqual(names));

  it("have the names that the setting accepts", () =>
    expect(knownEvictionPlugins.map(({ name }) => name)).toEqual(inTreeEvictionNames));

  it("evict no pod on a machine without readings", async () => {
    const pods = [testPod("p", { qosLevel: "reclaimed_cores", requests: [{ memory: "1" }] })];
    for (const plugin of make(["*", rss])) {
      expect((await plugin.getEvictPods(pods, never)).pods).toEqual([]);
      expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
      const question = { plugin: plugin.name, scope: "", topN: 1, candidateUids: null };
      expect((await plugin.getTopEvictionPods(pods, question, never)).pods).toEqual([]);
    }
  });
});

describe("allocatable resources of a CustomNodeResource", () => {
  const resource = {
    group: "",
    version: "",
    kind: "",
    plural: "",
    namespaced: false,
  };

  function reader(answer: () => unknown, isServed = true) {
    const { clock } = new TestMachine();
    let gets = 0;
    const client = {
      resolve: async () => (isServed ? resource : undefined),
      get: async (_: unknown, name: string): Promise<KubeObject> => {
        gets++;
        expect(name).toBe("node-1");
        return { metadata: {}, status: answer() };
      },
    };
    const read = customNodeResourceAllocatable({ client, nodeName: "node-1", clock });
    return { read: () => read(never), clock, gets: () => gets };
  }

  it("is read once in ten seconds", async () => {
    const { read, clock, gets } = reader(() => ({ resources: { allocatable: { a: "5k", b: 3, c: {} } } }));
    expect(await read()).toMatchObject({ state: "read", at: 0, value: { a: "5k", b: "3" } });
    await read();
    expect(gets()).toBe(1);
    await clock.step(10_001);
    await read();
    expect(gets()).toBe(2);
  });

  it.each([
    ["no status", () => undefined, true, "missing"],
    ["no resources", () => ({}), true, "missing"],
    ["an empty list", () => ({ resources: { allocatable: {} } }), true, "missing"],
    ["no such kind", () => ({}), false, "missing"],
    [
      "no such object",
      () => {
        throw new NodekeeperError("notFound", "deleted");
      },
      true,
      "missing",
    ],
    [
      "no answer",
      () => {
        throw new NodekeeperError("unavailable", "away");
      },
      true,
      "failed",
    ],
  ])("is an answer of its own with %s", async (_, answer, isServed, state) => {
    expect((await reader(answer, isServed).read()).state).toBe(state);
  });
});
