import { totalmem } from "node:os";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "../support/eviction-plugin.ts";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import {
  container,
  deployment,
  deploymentsPath,
  pod,
  podsPath,
  untilDeleted,
  untilPodReady,
  untilReady,
} from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";

const MIB = 2 ** 20;
// Keeps its last line, and there is no end of line in /dev/zero.
const hungry = container({
  command: ["/bin/busybox", "tail", "/dev/zero"],
  resources: { limits: { memory: "32Mi" } },
});

describe.skipIf(missingForNode("newContainerd"))("explain, of pods that a real kubelet ends", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  let plugin: TestEvictionPlugin;

  beforeAll(async () => {
    cluster = await startControlPlane();
    node = await startNode(cluster, { containerd: "newContainerd" });
    agent = await node.startAgent({ "eviction-sync-period": "1s", "eviction-burst": "1" });
    await agent.ready();
    plugin = await startEvictionPlugin(agent.pluginDirectory, "choosy");
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await node?.stop();
    await cluster?.stop();
  });

  /** Waits until the page says what is expected: the runtime's word may come a moment after the API server's. */
  async function explained(name: string, expected: RegExp): Promise<void> {
    let page = "";
    await eventually(async () => {
      page = await agent.command("explain", "pod", `default/${name}`);
      expect(page).toMatch(expected);
    });
    if (process.env.SHOW_EXPLAIN) console.log(page);
  }

  it("an eviction by a plugin: the kubelet ends the containers, and the controller's next pod stays", async () => {
    await cluster.admin.create(deploymentsPath, deployment("web", 1));
    const [first] = await untilReady(cluster, "app=web", 1);
    const { name, uid } = first!.metadata;
    plugin.threshold = hardPressure;
    plugin.top = pick([name]);
    await untilDeleted(cluster, name);
    plugin.threshold = {};
    await explained(
      name,
      /\nEvicted at \S+Z \(round \d+\), pod deleted after [\d.]+ s: requested by choosy: memory 0\.93 > threshold 0\.8\..* Container main exited with code 0\.\n.*POST eviction: accepted.*container main exited with code 0\n.*pod deleted/s,
    );
    const [second] = await untilReady(cluster, "app=web", 1);
    expect(second!.metadata.uid).not.toBe(uid);
    await cluster.admin.delete(`${deploymentsPath}/web`);
    await untilDeleted(cluster, second!.metadata.name);
  });

  it("a preemption by the scheduler", async () => {
    await cluster.admin.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: "urgent" },
      value: 1_000,
    });
    const { status } = await cluster.admin.get(`/api/v1/nodes/${node.name}`);
    // More than half of the node, so that there is room for one of the two.
    const cpu = `${Math.ceil(milliCpus(status.allocatable.cpu) * 0.6)}m`;
    const large = container({ resources: { requests: { cpu } } });
    await cluster.admin.create(podsPath, pod("patient", { containers: [large] }));
    await untilPodReady(cluster, "patient");
    await cluster.admin.create(podsPath, pod("urgent", { containers: [large], priorityClassName: "urgent" }));
    await untilPodReady(cluster, "urgent");
    await explained(
      "patient",
      /\nPod deleted at \S+Z, not by Nodekeeper\. Preempted by the scheduler: default-scheduler: preempting to accommodate a higher priority pod\. Container main exited with code 0\.\n/,
    );
    await cluster.admin.delete(`${podsPath}/urgent`);
  });

  it("containers that are OOM-killed and started again, each kill with one Event", async () => {
    await cluster.admin.create(podsPath, pod("hungry", { containers: [hungry] }));
    const restarts = async () => {
      const { status } = await cluster.admin.get(`${podsPath}/hungry`);
      return status.containerStatuses?.[0];
    };
    // containerd calls a kill "Error" where the exit reaches it before the kernel's word of the memory: then the next one.
    await eventually(async () =>
      expect(await restarts()).toMatchObject({
        restartCount: expect.toSatisfy((count: number) => count >= 2),
        lastState: { terminated: { reason: "OOMKilled", exitCode: 137 } },
      }),
    );
    await cluster.admin.delete(`${podsPath}/hungry`);
    await untilDeleted(cluster, "hungry");
    await explained(
      "hungry",
      /\nPod deleted at \S+Z, not by Nodekeeper\. .*Container main was OOM-killed( \(exit code 137, memory limit 32Mi\)\. Container main was OOM-killed)? \d+ times?, last at \S+Z\.\n/,
    );
    const kills = (await agent.command("explain", "pod", "default/hungry")).match(
      /container main was OOM-killed \(exit code 137, memory limit 32Mi\)/g,
    );
    await eventually(async () => {
      const { items } = await cluster.admin.get("/api/v1/namespaces/default/events");
      const events = (items as ApiObject[]).filter(
        ({ reason, involvedObject }) => reason === "ContainerOOMKilled" && involvedObject.name === "hungry",
      );
      const times = events.reduce((sum, { count, series }) => sum + (series?.count ?? count ?? 1), 0);
      expect(times).toBe(kills?.length);
    });
  });
});

// The cgroup of all that runs on this node is apart from the machine's, and with it what the kubelet counts as used.
describe.skipIf(missingForNode())("explain, of a pod that the kubelet evicts for its memory", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;

  beforeAll(async () => {
    cluster = await startControlPlane();
    node = await startNode(cluster, {
      kubelet: {
        evictionHard: { "memory.available": `${totalmem() - 256 * MIB}` },
        evictionPressureTransitionPeriod: "2s",
      },
    });
    agent = await node.startAgent();
    await agent.ready();
  });

  afterAll(async () => {
    await agent?.child.stop();
    await node?.stop();
    await cluster?.stop();
  });

  it("with the kubelet's own message, while a pod beside it stays", async () => {
    const command = [
      "/bin/sh",
      "-c",
      "/bin/busybox dd if=/dev/zero of=/kept/block bs=1M count=384; sleep 1000000",
    ];
    const volumes = [{ name: "kept", emptyDir: { medium: "Memory" } }];
    const volumeMounts = [{ name: "kept", mountPath: "/kept" }];
    await cluster.admin.create(
      podsPath,
      pod("modest", { containers: [container({ resources: { requests: { memory: "64Mi" } } })] }),
    );
    await untilPodReady(cluster, "modest");
    await cluster.admin.create(
      podsPath,
      pod("greedy", { containers: [container({ command, volumeMounts })], volumes }),
    );
    await eventually(async () => {
      const { status } = await cluster.admin.get(`${podsPath}/greedy`);
      expect(status).toMatchObject({ phase: "Failed", reason: "Evicted" });
    });
    let page = "";
    await eventually(async () => {
      page = await agent.command("explain", "pod", "default/greedy");
      expect(page).toMatch(
        /\nEvicted by the kubelet: The node was low on resource: memory\. .*Container main exited with code \d+/,
      );
    });
    if (process.env.SHOW_EXPLAIN) console.log(page);
    await untilPodReady(cluster, "modest");
  });
});

function milliCpus(quantity: string): number {
  return quantity.endsWith("m") ? Number.parseInt(quantity, 10) : Number(quantity) * 1_000;
}
