import { setTimeout as sleep } from "node:timers/promises";
import { node as nodeContent, PodLifecycleClient, status as statusField } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { FollowedLog } from "./support/followed-log.ts";
import { untilSameView } from "./support/node/same-view.ts";
import { container, pod, podsPath, untilDeleted, untilPodReady } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";
import { sample } from "./support/sample.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const WIDGETS = "example.com/widgets";
/** How long the kubelet stays away in the longest case. */
const DOWN_SECONDS = Number(process.env.E2E_KUBELET_DOWN_SECONDS ?? 20);

describe.skipIf(missingForNode("newContainerd"))("a real kubelet that restarts", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  let client: PodLifecycleClient;
  let log: FollowedLog;
  let plugin: SteeredPlugin;

  beforeAll(async () => {
    cluster = await startControlPlane();
    node = await startNode(cluster, {
      containerd: "newContainerd",
      kubelet: { cpuManagerPolicy: "static", reservedSystemCPUs: "0" },
    });
    agent = await node.startAgent({ "reporting-kubelet-resync-interval": "10m" });
    await agent.ready();
    client = new PodLifecycleClient({ socket: agent.apiSocket });
    log = new FollowedLog(client);
    await eventually(() => expect(log.snapshots).toBe(1));
    const widgets = { [WIDGETS]: "3" };
    plugin = new SteeredPlugin(agent, "widgets", [
      nodeContent(statusField("capacity", widgets), statusField("allocatable", widgets)),
    ]);
  });

  afterAll(async () => {
    await log?.stop();
    client?.close();
    await plugin?.stop();
    await agent?.child.stop();
    await node?.stop();
    await cluster?.stop();
  });

  const statusOf = async () => (await cluster.admin.get(`/api/v1/nodes/${node.name}`)).status as ApiObject;
  const restartsOf = async (name: string) => {
    const { metadata, status } = await cluster.admin.get(`${podsPath}/${name}`);
    return { uid: metadata.uid, phase: status.phase, restarts: status.containerStatuses?.[0].restartCount };
  };
  /** The allocations in all zones below, by the zone's type and name. */
  const allocations = async () => {
    const { status } = await cluster.admin.get(
      `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${node.name}`,
    );
    const found: Record<string, ApiObject[]> = {};
    const walk = (zones: ApiObject[] = []) => {
      for (const { type, name, allocations, children } of zones) {
        if (allocations) found[`${type}/${name}`] = allocations;
        walk(children);
      }
    };
    walk(status?.topologyZone);
    return found;
  };

  it("gives exclusive CPUs, which the zone of their NUMA node shows", async () => {
    const resources = { limits: { cpu: "1", memory: "32Mi" } };
    await cluster.admin.create(podsPath, pod("pinned", { containers: [container({ resources })] }));
    const { metadata } = await untilPodReady(cluster, "pinned");
    await eventually(async () =>
      expect((await allocations())["Numa/0"]).toEqual([
        { consumer: `default/pinned/${metadata.uid}`, requests: expect.objectContaining({ cpu: "1" }) },
      ]),
    );
    const { status } = await cluster.admin.get(
      `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${node.name}`,
    );
    if (process.env.SHOW_EXPLAIN) console.log(JSON.stringify(status.topologyZone, undefined, 1));
  });

  it("leaves extended resources of a plugin as they are published, and pods that use them running", async () => {
    await eventually(async () => expect((await statusOf()).allocatable[WIDGETS]).toBe("3"));
    const resources = { limits: { [WIDGETS]: "2" } };
    await cluster.admin.create(podsPath, pod("tinker", { containers: [container({ resources })] }));
    await untilPodReady(cluster, "tinker");
    const before = await restartsOf("tinker");
    for (let restart = 0; restart < 3; restart++) {
      await node.kubelet.kill();
      node.kubelet.start();
      await node.ready();
      await eventually(async () => {
        const { capacity, allocatable } = await statusOf();
        expect([capacity[WIDGETS], allocatable[WIDGETS]]).toEqual(["3", "3"]);
      });
      // A pod that comes after the restart shows that the kubelet has dealt with those before it.
      await cluster.admin.create(podsPath, pod(`later-${restart}`));
      await untilPodReady(cluster, `later-${restart}`);
      expect(await restartsOf("tinker")).toEqual(before);
      await cluster.admin.delete(`${podsPath}/later-${restart}`);
    }
    await cluster.admin.create(
      podsPath,
      pod("more", { containers: [container({ resources: { limits: { [WIDGETS]: "1" } } })] }),
    );
    await untilPodReady(cluster, "more");
    for (const name of ["tinker", "more"]) await cluster.admin.delete(`${podsPath}/${name}`);
    for (const name of ["tinker", "more"]) await untilDeleted(cluster, name);
    await untilSameView(node, client);
  });

  it(`away for ${DOWN_SECONDS} s: what happens meanwhile is reported, and what the zones show stays`, async () => {
    await cluster.admin.create(podsPath, pod("steady"));
    const { metadata } = await untilPodReady(cluster, "steady");
    await eventually(() => expect(log.ofPod(metadata.uid)).toEqual(["Started sandbox", "Started main"]));
    const held = await allocations();
    await node.kubelet.kill();
    const away = Date.now();
    const [started] = log.events.filter(({ pod, container }) => pod.uid === metadata.uid && container?.name);
    await node.containerd.ctr("task", "kill", "--signal", "SIGKILL", started!.container!.id);
    await eventually(() => expect(log.ofPod(metadata.uid)).toContain("Died main 137"));
    await sleep(Math.max(0, away + DOWN_SECONDS * 1_000 - Date.now()));
    expect(await allocations()).toEqual(held);
    expect((await agent.readiness()).text).toContain("[+]PodLifecycleReady ok");

    const seen = sample(allocations);
    node.kubelet.start();
    await node.ready();
    await eventually(() =>
      // The kubelet removes the old container before or after it starts the new one.
      expect(log.ofPod(metadata.uid).filter((each) => each !== "Removed main")).toEqual([
        "Started sandbox",
        "Started main",
        "Died main 137",
        "Started main",
      ]),
    );
    await eventually(async () => expect((await restartsOf("steady")).restarts).toBe(1));
    await untilSameView(node, client);
    await agent.ready();
    const readings = (result: string) =>
      agent.metric("nodekeeper_intree_kubelet_readings_total", `{result="${result}"}`);
    const before = (await readings("ok")) ?? 0;
    await cluster.admin.create(podsPath, pod("next"));
    await eventually(async () => expect(await readings("ok")).toBeGreaterThan(before));
    for (const each of await seen.stop()) expect(each).toEqual(held);
    expect(log.snapshots).toBe(1);
  });
});
