import { customNodeResource, metadata, node, status } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, kubeletCapacity, startControlPlane } from "./support/control-plane.ts";
import { missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const missing = missingParts("etcd", "openssl", "oldKubeApiServer", "kubectl", "cnrDefinition");
const NODE = "worker-1";
const gpus = "example.com/gpus";

describe.skipIf(missing)("an API server of Kubernetes 1.30", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  const plugins: SteeredPlugin[] = [];

  beforeAll(async () => {
    cluster = await startControlPlane({
      apiServer: "oldKubeApiServer",
      flags: [
        "--feature-gates=DynamicResourceAllocation=true",
        "--runtime-config=resource.k8s.io/v1alpha2=true",
      ],
    });
    await cluster.addNode(NODE);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: { "reporting-plugin-grace-period": "1s" },
    });
    await agent.ready();
  });

  afterAll(async () => {
    await Promise.all(plugins.map((plugin) => plugin.stop()));
    await agent?.child.stop();
    await cluster?.stop();
  });

  const cnr = () =>
    cluster.admin.get(`/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`);
  const liveNode = () => cluster.admin.get(`/api/v1/nodes/${NODE}`);

  it("is of the version it reports, and serves the old model of devices", async () => {
    expect((await cluster.admin.get("/version")).gitVersion).toMatch(/^v1\.30\./);
    const { resources } = await cluster.admin.get("/apis/resource.k8s.io/v1alpha2");
    expect(resources.map(({ name }: ApiObject) => name)).toContain("resourceslices");
  });

  it("gets reports, though one plugin's are refused, and loses only them as they end", async () => {
    plugins.push(
      new SteeredPlugin(agent, "bad", [customNodeResource(status("colour", "green"))]),
      new SteeredPlugin(agent, "good", [
        customNodeResource(status("resources", { capacity: { [gpus]: "8" } })),
        node(metadata("labels", { "example.com/gpu-model": "g1" }), status("capacity", { [gpus]: "8" })),
      ]),
    );
    await eventually(async () => {
      expect((await cnr()).status.resources.capacity).toEqual({ [gpus]: "8" });
      const { metadata, status } = await liveNode();
      expect(metadata.labels["example.com/gpu-model"]).toBe("g1");
      expect(status.capacity).toEqual({ ...kubeletCapacity, [gpus]: "8" });
    });
    await Promise.all(plugins.map((plugin) => plugin.stop()));
    await eventually(async () => {
      expect((await cnr()).status?.resources).toBeUndefined();
      const { metadata, status } = await liveNode();
      expect(metadata.labels["example.com/gpu-model"]).toBeUndefined();
      expect(status.capacity).toEqual(kubeletCapacity);
    });
    await agent.ready();
  });
});
