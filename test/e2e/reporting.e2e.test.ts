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
const kubeletLabels = { "kubernetes.io/hostname": NODE };

describe.skipIf(missing)("the reporting pipeline on a real API server", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  const plugins: SteeredPlugin[] = [];

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      // A token that is bound to a Node ends with it, as soon as the server's cache of tokens forgets it; the kubelet
      // would bring a new pod with another.
      unboundToken: true,
      flags: { "reporting-plugin-grace-period": "1s" },
    });
    await agent.ready();
  });

  afterAll(async () => {
    await Promise.all(plugins.map((plugin) => plugin.stop()));
    await agent?.child.stop();
    await cluster?.stop();
  });

  const cnr = () => cluster.admin.get(cnrPath);
  const liveNode = () => cluster.admin.get(nodePath);

  function plugin(name: string, ...contents: ConstructorParameters<typeof SteeredPlugin>[2]): SteeredPlugin {
    const steered = new SteeredPlugin(agent, name, contents);
    plugins.push(steered);
    return steered;
  }

  it("creates the CustomNodeResource with the machine's properties and a plugin's resources", async () => {
    plugin("gpus", gpuReport(8));
    await eventually(async () => {
      const { spec, status } = await cnr();
      expect(status.resources.allocatable).toEqual({ [gpus]: "8" });
      expect(spec.nodeResourceProperties.map((each: ApiObject) => each.propertyName)).toContain("memory");
    });
  });

  it("publishes changes, and shows kubectl one field manager", async () => {
    plugins[0]!.say(gpuReport(5));
    await eventually(async () => expect((await cnr()).status.resources.allocatable).toEqual({ [gpus]: "5" }));
    const yaml = await cluster.kubectl.run("get", "kcnr", NODE, "-o", "yaml", "--show-managed-fields");
    expect(yaml).toContain(`${gpus}: "5"`);
    const managers = new Set([...yaml.matchAll(/^\s*manager: (.*)$/gm)].map(([, name]) => name));
    expect([...managers]).toEqual(["nodekeeper"]);
  });

  it("leaves the fields of a second writer alone", async () => {
    const apiVersion = "node.katalyst.kubewharf.io/v1alpha1";
    const identity = { apiVersion, kind: "CustomNodeResource", metadata: { name: NODE } };
    await cluster.admin.apply(cnrPath, {
      ...identity,
      metadata: { name: NODE, labels: { "example.com/rack": "7" } },
      spec: { taints: [{ key: "example.com/slow", effect: "NoSchedule", qosLevel: "shared_cores" }] },
    });
    await cluster.admin.apply(`${cnrPath}/status`, {
      ...identity,
      status: { topologyPolicy: "None", resources: { allocatable: { "example.com/fpgas": "2" } } },
    });
    plugins[0]!.say(gpuReport(6));
    await eventually(async () => {
      const { metadata, spec, status } = await cnr();
      expect(status.resources.allocatable).toEqual({ [gpus]: "6", "example.com/fpgas": "2" });
      expect(status.topologyPolicy).toBe("None");
      expect(metadata.labels).toEqual({ "example.com/rack": "7" });
      expect(spec.taints).toHaveLength(1);
    });
  });

  it("keeps foreign taints beside its own, which share one list", async () => {
    const own = { key: "nodekeeper.dev/hot", effect: "NoSchedule", qosLevel: "reclaimed_cores" };
    const hot = plugin("taints", customNodeResource(spec("taints", [own])));
    const keys = async () => (await cnr()).spec.taints.map((taint: ApiObject) => taint.key).sort();
    await eventually(async () => expect(await keys()).toEqual(["example.com/slow", "nodekeeper.dev/hot"]));
    hot.say();
    await eventually(async () => expect(await keys()).toEqual(["example.com/slow"]));
  });

  it("takes back a field that another client changed", async () => {
    await cluster.admin.patch(`${cnrPath}/status`, {
      status: { resources: { allocatable: { [gpus]: "99" } } },
    });
    await eventually(async () => expect((await cnr()).status.resources.allocatable[gpus]).toBe("6"));
  });

  it("recreates a deleted CustomNodeResource", async () => {
    const { metadata } = await cnr();
    await cluster.admin.delete(cnrPath);
    await eventually(async () => {
      const made = await cnr();
      expect(made.metadata.uid).not.toBe(metadata.uid);
      expect(made.status.resources.allocatable).toEqual({ [gpus]: "6" });
      expect(made.spec.nodeResourceProperties).not.toEqual([]);
    });
  });

  it("publishes labels, annotations and extended resources of the Node, and nothing of the kubelet's", async () => {
    plugin(
      "node",
      node(
        metadata("labels", { "example.com/gpu-model": "g1", "kubernetes.io/hostname": "elsewhere" }),
        metadata("annotations", { "example.com/note": "with spaces, and ünicode" }),
        // The server refuses the Node with any of the last three, and accepts the large one before them.
        status("capacity", {
          ...{ [gpus]: "8", cpu: "1000" },
          "example.com/large": "8Pi",
          ...{ "example.com/a": "9Pi", "example.com/b": "1Ei", "example.com/c": "9223372036854776" },
        }),
        status("allocatable", { [gpus]: "7" }),
      ),
    );
    await eventually(async () => {
      const { metadata, status } = await liveNode();
      expect(metadata.labels).toEqual({ ...kubeletLabels, "example.com/gpu-model": "g1" });
      expect(metadata.annotations["example.com/note"]).toBe("with spaces, and ünicode");
      expect(status.capacity).toEqual({ ...kubeletCapacity, [gpus]: "8", "example.com/large": "8Pi" });
      expect(status.allocatable).toEqual({ ...kubeletCapacity, [gpus]: "7" });
    });
  });

  it("waits for a Node that is deleted, and publishes to its successor", async () => {
    await cluster.admin.delete(nodePath);
    await eventually(() => expect(agent.child.log).toContain(`Node ${NODE} does not exist`));
    await cluster.addNode(NODE);
    await eventually(async () => {
      const { metadata, status } = await liveNode();
      expect(metadata.labels).toEqual({ ...kubeletLabels, "example.com/gpu-model": "g1" });
      expect(status.capacity).toEqual({ ...kubeletCapacity, [gpus]: "8", "example.com/large": "8Pi" });
    });
  });

  const refused = {
    "a quantity that is none": status("resources", { allocatable: { [gpus]: "many" } }),
    "a wrong type deep inside": status("topologyZone", [{ name: "0", type: 5 }]),
    "a field that the definition does not know": status("colour", "green"),
  };
  it.each(Object.entries(refused))("isolates a plugin that reports %s", async (what, field) => {
    const bad = plugin(`bad-${Object.keys(refused).indexOf(what)}`, customNodeResource(field));
    await eventually(() => expect(bad.served.registration.state).toBe("registered"));
    const value = String(Object.keys(refused).indexOf(what) + 1);
    plugins[0]!.say(gpuReport(value));
    await eventually(async () =>
      expect((await cnr()).status.resources.allocatable).toEqual({ [gpus]: value }),
    );
    await bad.stop();
  });

  it("removes the fields of a plugin that is disconnected, after its grace", async () => {
    await Promise.all(plugins.map((each) => each.stop()));
    await eventually(async () => {
      const { metadata, status } = await liveNode();
      expect(metadata.labels).toEqual(kubeletLabels);
      expect(metadata.annotations?.["example.com/note"]).toBeUndefined();
      expect(status.capacity).toEqual(kubeletCapacity);
      expect(status.allocatable).toEqual(kubeletCapacity);
      const { spec, status: cnrStatus } = await cnr();
      expect(cnrStatus?.resources).toBeUndefined();
      expect(spec.nodeResourceProperties).not.toEqual([]);
    });
  });

  it("is ready at the end", async () => {
    await agent.ready();
  });
});

function gpuReport(usable: number | string) {
  const resources = { capacity: { [gpus]: "8" }, allocatable: { [gpus]: String(usable) } };
  return customNodeResource(status("resources", resources));
}
