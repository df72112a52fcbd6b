import { readFileSync } from "node:fs";
import { join } from "node:path";
import { customNodeResource, spec, status } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { deployDirectory, installNodekeeper } from "./support/nodekeeper-install.ts";
import { missingParts, pathOf } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const own = join(deployDirectory, "crds/customnoderesources.yaml");
const NODE = "worker-1";

describe.skipIf(missingParts("cnrDefinition"))("our definition of CustomNodeResource", () => {
  it("has the names, fields, types and rules of katalyst's", () => {
    const [ours, theirs] = [own, pathOf("cnrDefinition")].map(
      (path) => parse(readFileSync(path, "utf8")).spec,
    );
    expect(ours.names).toEqual({
      ...theirs.names,
      shortNames: expect.arrayContaining(theirs.names.shortNames),
    });
    expect([ours.group, ours.scope]).toEqual([theirs.group, theirs.scope]);
    expect(ours.versions).toHaveLength(theirs.versions.length);
    const [version, upstream] = [ours.versions[0], theirs.versions[0]];
    expect(version.name).toBe(upstream.name);
    expect(version.subresources).toEqual(upstream.subresources);
    expect(withoutDescriptions(version.schema)).toEqual(withoutDescriptions(upstream.schema));
  });
});

const missing = missingParts("etcd", "openssl", "kubeApiServer", "kubectl");
describe.skipIf(missing)("a cluster with our definition in place of katalyst's", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  let plugin: SteeredPlugin;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    await installNodekeeper(cluster, own);
    agent = await AgentProcess.start(cluster, { nodeName: NODE });
    await agent.ready();
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await cluster?.stop();
  });

  it("publishes, and kubectl knows its short names and explains its fields", async () => {
    const reclaimed = "resource.katalyst.kubewharf.io/reclaimed";
    const resources = {
      allocatable: { [`${reclaimed}_millicpu`]: "2500", [`${reclaimed}_memory`]: "4Gi" },
    };
    const taints = [{ key: "example.com/busy", effect: "NoSchedule", qosLevel: "shared_cores" }];
    const zone = { type: "Numa", name: "0", children: [{ type: "GPU", name: "0" }] };
    plugin = new SteeredPlugin(agent, "zones", [
      customNodeResource(
        status("topologyZone", [zone]),
        status("resources", resources),
        spec("taints", taints),
      ),
    ]);
    const path = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`;
    await eventually(async () => {
      const object = await cluster.admin.get(path);
      expect(object.status).toEqual({ topologyPolicy: "none", topologyZone: [zone], resources });
    });
    for (const name of ["cnr", "kcnr"])
      expect(await cluster.kubectl.run("get", name)).toMatch(
        /^NAME +TOPOLOGY POLICY +RECLAIMED CPU +RECLAIMED MEMORY +TAINT +AGE\nworker-1 +none +2500 +4Gi +example\.com\/busy +\d/,
      );
    const explained = await cluster.kubectl.run("explain", "customnoderesources.status.topologyZone");
    expect(explained).toContain("The node's parts and what each has.");
  });
});

// A field may be called "description" too; only a text under that name describes.
function withoutDescriptions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions).sort();
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([name, value]) => name !== "description" || typeof value !== "string",
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutDescriptions(value)]));
}
