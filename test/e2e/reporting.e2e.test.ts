import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { customNodeResource, metadata, node, spec, status } from "../../sdk/index.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { eventually } from "./support/eventually.ts";
import { missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const missing = missingParts("etcd", "openssl", "kubeApiServer", "kubectl", "cnrDefinition");
const NODE = "worker-1";
const cnrPath = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`;
const nodePath = `/api/v1/nodes/${NODE}`;
const gpus = "example.com/gpus";

describe.skipIf(missing)("the reporting pipeline on a real API server", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  let plugin: SteeredPlugin;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: { "reporting-plugin-grace-period": "2s", "log-level": "debug" },
    });
    plugin = new SteeredPlugin(agent, "steered", [report(8)]);
    await agent.ready();
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await cluster?.stop();
  });

  const cnr = () => cluster.admin.get(cnrPath);
  const liveNode = () => cluster.admin.get(nodePath);

  it("creates the CustomNodeResource with the machine's properties and the plugin's resources", async () => {
    await eventually(async () => {
      const object = await cnr();
      expect(object.status.resources.allocatable).toEqual({ [gpus]: "8" });
      expect(object.spec.nodeResourceProperties.map((each: ApiObject) => each.propertyName)).toContain("CPU");
    });
  });

  it("publishes changes", async () => {
    plugin.say(report(5));
    await eventually(async () => expect((await cnr()).status.resources.allocatable).toEqual({ [gpus]: "5" }));
  });

  it("shows one field manager to kubectl", async () => {
    const yaml = await cluster.kubectl.run("get", "kcnr", NODE, "-o", "yaml", "--show-managed-fields");
    const managers = new Set([...yaml.matchAll(/^\s*manager: (.*)$/gm)].map(([, name]) => name));
    expect([...managers]).toEqual(["nodekeeper"]);
  });
});

function report(usable: number) {
  const resources = { capacity: { [gpus]: "8" }, allocatable: { [gpus]: String(usable) } };
  return customNodeResource(status("resources", resources));
}
