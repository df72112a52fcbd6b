import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DevicePool, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { schedulerOf } from "./support/node.ts";
import { installNodekeeper, optionalRbacFile, policiesFile } from "./support/nodekeeper-install.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";

const DRIVER = "fabric.example.com";
const NODES = ["worker-a", "worker-b"];
const resources = "/apis/resource.k8s.io/v1";
const slices = `${resources}/resourceslices`;
const pods = "/api/v1/namespaces/default/pods";
const lease = `/apis/coordination.k8s.io/v1/namespaces/nodekeeper/leases/nodekeeper-pools-${DRIVER}`;

const missing = missingParts(...controlPlaneParts, "kubeScheduler");

describe.skipIf(missing)("pools beyond the node", () => {
  let cluster: ControlPlane;
  const ends: Array<() => unknown> = [];
  const agents = new Map<string, AgentProcess>();
  /** What the fabric has; every node's driver sees it. */
  let ports = ["port-0", "port-1"];
  let pools = (): DevicePool[] => [
    { name: "fabric", allNodes: true, devices: ports.map((name) => ({ name })) },
  ];
  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };

  beforeAll(async () => {
    cluster = await startControlPlane();
    ends.push(() => cluster.stop());
    await installNodekeeper(cluster);
    // As docs/devices.md tells an operator without the chart.
    const policies = readFileSync(policiesFile, "utf8");
    const own = join(cluster.directory, "policies.yaml");
    writeFileSync(own, policies.replace('expression: "[]"', `expression: '["${DRIVER}"]'`));
    await cluster.kubectl.run("apply", "-f", optionalRbacFile, "-f", own);
    for (const name of NODES) await cluster.addNode(name);
    const scheduler = await schedulerOf(cluster);
    scheduler.start();
    ends.push(() => scheduler.stop());
    for (const nodeName of NODES) {
      const flags = { "devices-cluster-pools-drivers": DRIVER };
      const agent = await AgentProcess.start(cluster, { nodeName, flags });
      agents.set(nodeName, agent);
      ends.push(() => agent.child.stop());
      const driver = serveDeviceDriver({
        name: DRIVER,
        socketDir: agent.pluginDirectory,
        async *devices() {
          for (;;) {
            const next = changed.promise;
            yield [...pools(), { devices: [{ name: "local" }] }];
            await next;
          }
        },
      });
      ends.push(() => driver.stop());
    }
    await cluster.admin.create(`${resources}/deviceclasses`, {
      apiVersion: "resource.k8s.io/v1",
      kind: "DeviceClass",
      metadata: { name: DRIVER },
      spec: { selectors: [{ cel: { expression: `device.driver == "${DRIVER}"` } }] },
    });
  });

  afterAll(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const ofFabric = async (): Promise<ApiObject[]> =>
    (await cluster.admin.get(slices)).items.filter((item: ApiObject) => item.spec.pool.name === "fabric");
  const holder = async (): Promise<string> =>
    String((await cluster.admin.get(lease)).spec.holderIdentity).split("_")[0]!;

  /** A pod that claims a device of the fabric on a node; gives the device. */
  async function allocated(name: string, node: string): Promise<string> {
    const claims = `${resources}/namespaces/default/resourceclaims`;
    await cluster.admin.create(claims, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name },
      spec: {
        devices: {
          requests: [
            {
              name: "port",
              exactly: {
                deviceClassName: DRIVER,
                count: 1,
              },
            },
          ],
        },
      },
    });
    await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: {
        nodeSelector: { "kubernetes.io/hostname": node },
        // No kubelet runs.
        tolerations: [{ operator: "Exists" }],
        resourceClaims: [{ name: "port", resourceClaimName: name }],
        containers: [{ name: "app", image: "app", resources: { claims: [{ name: "port" }] } }],
      },
    });
    return await eventually(async () => {
      expect((await cluster.admin.get(`${pods}/${name}`)).spec.nodeName).toBe(node);
      const [result] = (await cluster.admin.get(`${claims}/${name}`)).status.allocation.devices.results;
      return `${result.pool}/${result.device}`;
    });
  }

  it("are published once, and the scheduler allocates their devices on any node", async () => {
    await eventually(async () => expect(await ofFabric()).toHaveLength(1));
    const [slice] = await ofFabric();
    expect(slice!.spec.allNodes).toBe(true);
    expect(slice!.spec.nodeName).toBeUndefined();
    const used = [];
    // Three on one node: its own device and both ports of the fabric.
    for (let at = 0; at < 3; at++) used.push(await allocated(`pod-${at}`, "worker-b"));
    expect(used.sort()).toEqual(["fabric/port-0", "fabric/port-1", "worker-b/local"]);
  });

  it("stay while their holder is killed, and are kept by the next one", async () => {
    const first = await holder();
    const [before] = await ofFabric();
    let isWatching = true;
    const gaps: string[] = [];
    const watching = (async () => {
      while (isWatching) {
        const now = await ofFabric();
        if (now.length !== 1 || now[0]!.metadata.uid !== before!.metadata.uid)
          gaps.push(now.map(({ metadata }) => metadata.name).join());
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    })();
    await agents.get(first)!.child.kill();
    ports = ["port-0", "port-1", "port-2"];
    change();
    await eventually(async () => {
      expect(await holder()).not.toBe(first);
      const [slice] = await ofFabric();
      expect(slice!.spec.devices).toHaveLength(3);
    });
    isWatching = false;
    await watching;
    expect(gaps).toEqual([]);
    const second = NODES.find((name) => name !== first)!;
    expect(await allocated("after", second)).toMatch(/^fabric\/port-2$|\/local$/);
    expect(await agents.get(second)!.command("devices", DRIVER)).toMatch(
      /1 pool beyond the node, published by this agent: 3 devices reported, 3 published/,
    );
  });

  it("are refused if another node has a pool of the name, and their Lease is deleted with the last one", async () => {
    const second = await holder();
    const first = NODES.find((name) => name !== second)!;
    pools = () => [{ name: first, allNodes: true, devices: [{ name: "taken" }] }];
    change();
    const agent = agents.get(second)!;
    await eventually(async () => {
      expect(await ofFabric()).toEqual([]);
      expect(await agent.command("devices", DRIVER)).toMatch(
        new RegExp(`^${first} .*refused: node ${first} has a pool of this name`, "m"),
      );
    });
    const { items } = await cluster.admin.get(slices);
    expect(items.map(({ spec }: ApiObject) => spec.nodeName).sort()).toEqual(NODES);
    pools = () => [];
    change();
    await eventually(async () => await expect(cluster.admin.get(lease)).rejects.toThrow(/not found/i));
  });
});
