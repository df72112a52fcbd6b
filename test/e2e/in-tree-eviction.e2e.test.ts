import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Containerd } from "./support/containerd.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { CriClient } from "./support/cri-client.ts";
import { containerdParts, controlPlaneParts, missingParts } from "./support/parts.ts";
import { TestKubelet } from "./support/test-kubelet.ts";

const NODE = "worker-1";
const pods = "/api/v1/namespaces/default/pods";
const missing = process.getuid?.() !== 0 || missingParts(...controlPlaneParts, ...containerdParts);
const hasPressure = existsSync("/proc/pressure/memory");

// What a policy may read of the node is met at once on any machine; whom it takes depends on the pods alone.
const policies = `policies:
  - name: largest
    type: hard
    observed: node.memory.total - node.memory.free
    operator: greaterThan
    threshold: quantity("1Mi")
    pods: pod.labels["test"] == "policy"
    rank: [pod.usage.rss]
  - name: images
    type: hard
    observed: node.imagefs.available
    operator: greaterThan
    threshold: quantity("1Mi")
    pods: pod.labels["test"] == "images"
    rank: [pod.usage.rss]
  - name: stalled
    type: hard
    observed: node.psi.memory.some.avg10
    operator: greaterThan
    threshold: "-1.0"
    pods: pod.labels["test"] == "pressure"
    rank: [pod.usage.rss]
`;

describe.skipIf(missing)("in-tree eviction plugins on real cgroups of containers in containerd", () => {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let kubelet: TestKubelet;
  let agent: AgentProcess;
  let file: string;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    containerd = await Containerd.start(join(cluster.directory, "containerd"), "containerd");
    cri = new CriClient(containerd);
    // dd reads its block whole before it writes, and holds it while nobody reads more than its first byte.
    kubelet = new TestKubelet(cluster, cri, NODE, ({ metadata }) => [
      "/bin/sh",
      "-c",
      `trap 'exit 0' TERM; dd if=/dev/zero bs=${metadata.annotations.holds} 2>/dev/null | (dd bs=1 count=1 of=/dev/null 2>/dev/null; echo ready; sleep 1000000) & wait`,
    ]);
    file = join(cluster.directory, "policies.yaml");
    writeFileSync(file, "policies: []\n");
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        "runtime-endpoint": `unix://${containerd.socket}`,
        "eviction-sync-period": "1s",
        "eviction-in-tree-plugins": "rss-overuse-eviction-plugin",
        "eviction-policies-files": file,
      },
    });
    await agent.ready();
  });

  afterEach(async () => {
    const { items } = await cluster.admin.get(pods);
    for (const { metadata } of items as ApiObject[]) {
      await cluster.admin.delete(`${pods}/${metadata.name}?gracePeriodSeconds=1`).catch(() => {});
    }
    await eventually(async () => expect((await cluster.admin.get(pods)).items).toEqual([]));
  });

  afterAll(async () => {
    await agent?.child.stop();
    await kubelet?.stop();
    cri?.close();
    await containerd?.stop();
    await cluster?.stop();
  });

  async function addPod(name: string, holds: string, request: string, test: string): Promise<ApiObject> {
    return await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels: { test }, annotations: { holds } },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 2,
        containers: [{ name: "app", image: "app", resources: { requests: { memory: request } } }],
      },
    });
  }

  const namesThere = async () =>
    (await cluster.admin.get(pods)).items.map(({ metadata }: ApiObject) => metadata.name).sort();

  it("rss-overuse names the pod that holds more than it asked for, and no other", async () => {
    // The one that holds most asked for more than that.
    await addPod("modest", "96M", "256Mi", "rss");
    await addPod("greedy", "64M", "32Mi", "rss");
    await eventually(async () => expect(await namesThere()).toEqual(["modest"]));
    const page = await agent.command("explain", "pod", "default/greedy");
    // It may have been read while it was still taking its 64 MiB: 34 and more are above the threshold.
    expect(page).toMatch(
      /RSS of (3[4-9]|[4-7]\d)Mi is [12]\.\d+ times the memory requests of 32Mi > threshold 1\.05/,
    );
  });

  it("a policy takes the pod that holds most of those its filter takes, by its real reading", async () => {
    const added = [
      await addPod("outside", "96M", "256Mi", "other"),
      await addPod("little", "16M", "256Mi", "policy"),
      await addPod("much", "64M", "256Mi", "policy"),
    ];
    for (const { metadata } of added)
      await eventually(async () => expect(await cri.logs(metadata, { name: "app" })).toContain("ready"));
    writeFileSync(file, policies);
    await eventually(async () => expect(await namesThere()).toEqual(["little", "outside"]));
    const page = await agent.command("explain", "pod", "default/much");
    expect(page).toContain("policy-largest");
  });

  it("the file system of images is where the runtime reports it", async () => {
    await addPod("full", "1M", "256Mi", "images");
    await eventually(async () => expect(await namesThere()).toEqual([]));
    expect(await agent.command("explain", "pod", "default/full")).toContain("policy-images");
  });

  it("pressure stall information is read where the kernel has it, and evicts no pod where it has not", async () => {
    await addPod("stalled", "16M", "256Mi", "pressure");
    const isMet = () => agent.metric("nodekeeper_intree_policy_met", '{policy="stalled"}');
    if (hasPressure) {
      await eventually(async () => expect(await namesThere()).toEqual([]));
    } else {
      const rounds = (await agent.metric("nodekeeper_eviction_rounds_total", '{result="done"}')) ?? 0;
      await eventually(async () =>
        expect(await agent.metric("nodekeeper_eviction_rounds_total", '{result="done"}')).toBeGreaterThan(
          rounds + 4,
        ),
      );
      expect(await isMet()).toBe(0);
      expect(await namesThere()).toEqual(["stalled"]);
    }
  });
});
