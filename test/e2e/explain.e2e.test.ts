import { join } from "node:path";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
// Ends at SIGTERM with the exit code of a program that does not handle it: once it has logged "ready", and not before.
const sleeping = ["/bin/sh", "-c", "trap 'exit 143' TERM; echo ready; while true; do sleep 0.1; done"];
// Keeps its last line, and there is no end of line in /dev/zero.
const hungry = ["/bin/busybox", "tail", "/dev/zero"];

describe.skipIf(missing)("explain on a real kube-apiserver and containerd", () => {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let kubelet: TestKubelet;
  let agent: AgentProcess;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    containerd = await Containerd.start(join(cluster.directory, "containerd"), "containerd");
    cri = new CriClient(containerd);
    kubelet = new TestKubelet(cluster, cri, NODE, ({ metadata }) =>
      metadata.labels?.appetite ? hungry : sleeping,
    );
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: { "runtime-endpoint": `unix://${containerd.socket}`, "eviction-sync-period": "1s" },
    });
    await agent.ready();
  });

  afterAll(async () => {
    await agent?.child.stop();
    await kubelet?.stop();
    cri?.close();
    await containerd?.stop();
    await cluster?.stop();
  });

  async function addPod(name: string, changes: ApiObject = {}): Promise<void> {
    const { metadata } = await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...changes.metadata },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 5,
        restartPolicy: "Never",
        containers: [{ name: "main", image: "app", resources: changes.resources ?? {} }],
      },
    });
    await eventually(async () => {
      const { status } = await cluster.admin.get(`${pods}/${name}`);
      expect([status.phase, kubelet.problems]).toEqual(["Running", []]);
    });
    if (metadata.labels?.appetite) return;
    await eventually(async () => expect(await cri.logs(metadata, { name: "main" })).toContain("ready"));
  }

  /** The page, once it says what is expected: the runtime's word may come a moment after the API server's. */
  async function explained(name: string, expected: RegExp): Promise<void> {
    let page = "";
    await eventually(async () => {
      page = await agent.command("explain", "pod", `default/${name}`);
      expect(page).toMatch(expected);
    });
    if (process.env.SHOW_EXPLAIN) console.log(page);
  }

  it("a pod that was deleted by hand", async () => {
    await addPod("by-hand");
    await explained("by-hand", /container main started\n/);
    // The API server records the deletion in whole seconds: within the second of the start, it would be listed before it.
    const startedBy = Math.floor(Date.now() / 1_000);
    await until("the next second", () => Date.now() / 1_000 >= startedBy + 1);
    await cluster.kubectl.run("delete", "pod", "by-hand", "--wait=true", "--grace-period=5");
    await explained(
      "by-hand",
      /\nPod deleted at \S+Z, not by Nodekeeper\. Container main exited with code 143\.\n\nWhat happened\n.*container main started\n.*deletion requested, grace period 5 s\n.*container main exited with code 143\n.*pod deleted\n/s,
    );
  });

  it("a pod that the scheduler preempted", async () => {
    await addPod("preempted");
    // As kube-scheduler does it: the condition first, then the deletion (pkg/scheduler/framework/preemption).
    const message = "default-scheduler: preempting to accommodate a higher priority pod";
    const lastTransitionTime = new Date().toISOString();
    await cluster.admin.patch(`${pods}/preempted/status`, {
      status: {
        conditions: [
          ...[{ type: "Ready", status: "True", lastTransitionTime }],
          {
            ...{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" },
            ...{ message, lastTransitionTime },
          },
        ],
      },
    });
    await cluster.admin.delete(`${pods}/preempted`);
    await explained(
      "preempted",
      /\nPod deleted at \S+Z, not by Nodekeeper\. Preempted by the scheduler: default-scheduler: preempting to accommodate a higher priority pod\. Container main exited with code 143\.\n/,
    );
    // By the managedFields of the real API server: this client is the scheduler here.
    await explained("preempted", /preempting to accommodate a higher priority pod; condition set by \S+\n/);
  });

  /** Adds pods until one is reported as OOM-killed. containerd reports "Error" if the exit precedes the kernel's OOM event. */
  async function addKilledPod(): Promise<string> {
    const resources = { limits: { memory: "32Mi" }, requests: { memory: "32Mi" } };
    for (let attempt = 1; attempt < 6; attempt++) {
      const name = `hungry-${attempt}`;
      await addPod(name, { metadata: { labels: { appetite: "large" } }, resources });
      let page = "";
      await eventually(async () => {
        page = await agent.command("explain", "pod", `default/${name}`);
        expect(page).toMatch(/container main (was OOM-killed|exited)/);
      });
      if (page.includes("was OOM-killed")) return name;
      expect(page).toContain("exited with code 137");
    }
    throw new Error("no pod was OOM-killed");
  }

  it("a pod whose container was OOM-killed, with an Event on it", async () => {
    const name = await addKilledPod();
    await explained(
      name,
      /\nNot evicted: no plugin requested it\. Container main was OOM-killed at \S+Z\.\n.*container main was OOM-killed \(exit code 137, memory limit 32Mi\)\n/s,
    );
    await eventually(async () => {
      const { items } = await cluster.admin.get("/api/v1/namespaces/default/events");
      const [event, ...more] = items.filter(({ reason }: ApiObject) => reason === "ContainerOOMKilled");
      expect(more).toEqual([]);
      expect(event).toMatchObject({ type: "Warning", involvedObject: { kind: "Pod", name } });
      expect(event.message).toMatch(
        /^Container main was OOM-killed \(exit code 137\)\. Memory limit: 32Mi\..* \(node worker-1\)$/,
      );
    });
    await cluster.admin.delete(`${pods}/${name}`);
    await explained(name, /\nPod deleted at \S+Z, not by Nodekeeper\. .*Container main was OOM-killed/);
  });
});
