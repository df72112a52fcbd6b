import { rmSync } from "node:fs";
import { join } from "node:path";
import { customNodeResource, metadata, node, spec, status } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, kubeletCapacity, startControlPlane } from "./support/control-plane.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const missing = missingParts(...controlPlaneParts);
const NODE = "worker-1";
const cnrPath = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`;
const nodePath = `/api/v1/nodes/${NODE}`;
const gpus = "example.com/gpus";
const chips = "example.com/chips";
const foreign = { key: "example.com/slow", effect: "NoSchedule", qosLevel: "shared_cores" };
const own = { key: "example.com/hot", effect: "NoSchedule", qosLevel: "reclaimed_cores" };

describe.skipIf(missing)("what is the agent's on a real API server", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  let gpuPlugin: SteeredPlugin;
  let chipPlugin: SteeredPlugin;

  const start = (grace: string) =>
    AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        "reporting-plugin-grace-period": grace,
        "reporting-in-tree-plugins": "-system-reporter-plugin",
      },
    });

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    // Installs the definition.
    agent = await start("10m");
    // It is served a little after it was created.
    await eventually(() =>
      cluster.admin.apply(cnrPath, {
        apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
        kind: "CustomNodeResource",
        metadata: { name: NODE },
        spec: { taints: [foreign] },
      }),
    );
    await agent.ready();
    gpuPlugin = new SteeredPlugin(agent, "gpus", gpuReport("1"));
    chipPlugin = new SteeredPlugin(agent, "chips", chipReport("1"));
  });

  afterAll(async () => {
    await Promise.all([gpuPlugin?.stop(), chipPlugin?.stop()]);
    await agent?.child.stop();
    await cluster?.stop();
  });

  async function held() {
    const [cnr, live] = await Promise.all([cluster.admin.get(cnrPath), cluster.admin.get(nodePath)]);
    return {
      taints: (cnr.spec?.taints ?? []).map((taint: ApiObject) => taint.key).sort(),
      properties: (cnr.spec?.nodeResourceProperties ?? []).map((each: ApiObject) => each.propertyName),
      label: live.metadata.labels["example.com/gpus"],
      capacity: live.status.capacity,
    };
  }

  const chipsOf = async () => (await cluster.admin.get(nodePath)).metadata.labels["example.com/chips"];
  const withGpus = (value: string, chipCount: string) => ({
    taints: [own.key, foreign.key].sort(),
    properties: ["gpu_model"],
    label: value,
    capacity: { ...kubeletCapacity, [gpus]: "8", [chips]: chipCount },
  });

  async function startWithoutState(grace: string): Promise<void> {
    await agent.child.stop();
    rmSync(join(cluster.directory, `agent-${NODE}`, "state"), { recursive: true });
    agent = await start(grace);
    await agent.ready();
  }

  it("is published beside another client's taint", async () => {
    await eventually(async () => expect(await held()).toEqual(withGpus("1", "1")));
  });

  it("stays, and the other client's with it, when the state is lost and a plugin is late", async () => {
    await gpuPlugin.stop();
    await startWithoutState("10m");
    chipPlugin.say(...chipReport("2"));
    await eventually(async () => expect(await chipsOf()).toBe("2"));
    await eventually(async () => expect(await held()).toEqual(withGpus("1", "2")));
    gpuPlugin = new SteeredPlugin(agent, "gpus", gpuReport("2"));
    await eventually(async () => expect(await held()).toEqual(withGpus("2", "2")));
  });

  it("is released when the state is lost and its plugin never comes back", async () => {
    await gpuPlugin.stop();
    await startWithoutState("0s");
    await eventually(async () =>
      expect(await held()).toEqual({
        taints: [foreign.key],
        properties: [],
        label: undefined,
        capacity: { ...kubeletCapacity, [chips]: "2" },
      }),
    );
  });

  it("is one item of a list with keys, and all of a list without", async () => {
    const property = (propertyName: string) => ({ propertyName, propertyValues: ["x"] });
    const pool = (poolName: string) => ({ poolName, minAllocatable: { cpu: "1" } });
    await cluster.admin.patch(cnrPath, { spec: { nodeResourceProperties: [property("theirs")] } });
    await cluster.admin.patch(`${cnrPath}/status`, {
      status: { resources: { resourcePools: [pool("theirs")] } },
    });
    const report = customNodeResource(
      spec("nodeResourceProperties", [property("ours")]),
      status("resources", { resourcePools: [pool("ours")] }),
    );
    const plugin = new SteeredPlugin(agent, "pools", [report]);
    const names = async () => {
      const { spec: desired, status: actual } = await cluster.admin.get(cnrPath);
      return {
        pools: (actual.resources?.resourcePools ?? []).map((each: ApiObject) => each.poolName).sort(),
        properties: (desired.nodeResourceProperties ?? []).map((each: ApiObject) => each.propertyName),
      };
    };
    await eventually(async () =>
      expect(await names()).toEqual({ pools: ["ours", "theirs"], properties: ["ours"] }),
    );
    plugin.say(customNodeResource());
    await eventually(async () => expect(await names()).toEqual({ pools: ["theirs"], properties: [] }));
    await plugin.stop();
  });

  it("is not frozen by a plugin that reports more than etcd takes", async () => {
    const report = (size: number) =>
      customNodeResource(
        status("resources", {
          allocatable: Object.fromEntries(
            Array.from({ length: size }, (_, at) => [`example.com/a-rather-long-resource-name-${at}`, "1"]),
          ),
        }),
      );
    const large = new SteeredPlugin(agent, "large", [report(3)]);
    const allocatable = async () =>
      Object.keys((await cluster.admin.get(cnrPath)).status?.resources?.allocatable ?? {});
    await eventually(async () => expect(await allocatable()).toHaveLength(3));
    large.say(report(14_000));
    await eventually(async () =>
      expect(await agent.command("plugins", "list", "-o", "json")).toContain("is not published: its"),
    );
    chipPlugin.say(...chipReport("3"));
    await eventually(async () => expect(await chipsOf()).toBe("3"));
    expect(await allocatable()).toHaveLength(3);
    await agent.ready();
    // What has room by the agent's count has room in etcd.
    large.say(report(7_000));
    await eventually(async () => expect(await allocatable()).toHaveLength(7_000));
    await large.stop();
  });
});

function gpuReport(value: string) {
  return [
    customNodeResource(
      spec("taints", [own]),
      spec("nodeResourceProperties", [{ propertyName: "gpu_model", propertyValues: ["x"] }]),
    ),
    node(metadata("labels", { "example.com/gpus": value }), status("capacity", { [gpus]: "8" })),
  ];
}

function chipReport(value: string) {
  return [node(metadata("labels", { "example.com/chips": value }), status("capacity", { [chips]: value }))];
}
