import { PodLifecycleClient } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { FollowedLog } from "./support/followed-log.ts";
import { untilSameView } from "./support/node/same-view.ts";
import {
  container,
  deployment,
  deploymentsPath,
  pod,
  podsPath,
  untilDeleted,
  untilPodReady,
  untilReady,
  wellBehaved,
} from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";

const shell = (script: string) => ["/bin/sh", "-c", script];
const memory = { volumes: [{ name: "kept", emptyDir: {} }] };
const kept = { volumeMounts: [{ name: "kept", mountPath: "/kept" }] };

// 1.7 gives each event to one subscriber, and the kubelet is none; 2.x to all.
const versions = ["containerd", "newContainerd"] as const;

describe.each(versions)("pods of a real kubelet on %s", (part) => {
  describe.skipIf(missingForNode(part))("are in the agent what they are in the kubelet", () => {
    let cluster: ControlPlane;
    let node: ClusterNode;
    let agent: AgentProcess;
    let client: PodLifecycleClient;
    let log: FollowedLog;

    beforeAll(async () => {
      cluster = await startControlPlane();
      node = await startNode(cluster, { containerd: part });
      agent = await node.startAgent();
      await agent.ready();
      client = new PodLifecycleClient({ socket: agent.apiSocket });
      log = new FollowedLog(client);
      await eventually(() => expect(log.snapshots).toBe(1));
    });

    afterAll(async () => {
      await log?.stop();
      client?.close();
      await agent?.child.stop();
      await node?.stop();
      await cluster?.stop();
    });

    afterEach(async () => {
      await untilSameView(node, client);
      // Of each container every step once and in order, whatever the kubelet did with it.
      for (const [id, events] of log.byContainer) {
        const steps = events.map(({ type }) => type.replace("Container", "")).join(" ");
        // One that ended before it was read is reported by its end alone.
        expect(steps, id).toMatch(/^(Started|(Started )?Died( Removed)?)$/);
      }
      expect(log.snapshots).toBe(1);
    });

    const create = (object: ApiObject) => cluster.admin.create(podsPath, object);
    const statusOf = async (name: string) => (await cluster.admin.get(`${podsPath}/${name}`)).status;

    it("through the rollout of a Deployment", async () => {
      await cluster.admin.create(deploymentsPath, deployment("web", 3));
      const old = await untilReady(cluster, "app=web", 3);
      await untilSameView(node, client);
      await cluster.admin.patch(`${deploymentsPath}/web`, {
        spec: { template: { metadata: { labels: { version: "2" } } } },
      });
      const fresh = await untilReady(cluster, "app=web,version=2", 3);
      await untilReady(cluster, "app=web", 3);
      for (const { metadata } of old) {
        const started = ["Started sandbox", "Started main"];
        // wellBehaved ends with 0. The sandbox and the container may be removed in either order.
        await eventually(() => {
          const steps = log.ofPod(metadata.uid);
          expect(steps.slice(0, 3)).toEqual([...started, "Died main 0"]);
          expect(steps.slice(3).sort()).toEqual(["Died sandbox", "Removed main", "Removed sandbox"]);
        });
      }
      for (const { metadata } of fresh)
        expect(log.ofPod(metadata.uid)).toEqual(["Started sandbox", "Started main"]);
      await cluster.admin.delete(`${deploymentsPath}/web`);
      for (const { metadata } of fresh) await untilDeleted(cluster, metadata.name);
    });

    it("in a crash loop, each exit with its code, and its end", async () => {
      // Exits with 1, 2, 3 and then with 0.
      const script =
        "n=$(cat /kept/n); n=$((n+1)); echo $n > /kept/n; [ $n -ge 4 ] && exit 0; sleep 0.2; exit $n";
      const { metadata } = await create(
        pod("crashing", {
          restartPolicy: "OnFailure",
          containers: [container({ command: shell(script), ...kept })],
          ...memory,
        }),
      );
      await eventually(async () => expect((await statusOf("crashing")).phase).toBe("Succeeded"));
      expect((await statusOf("crashing")).containerStatuses[0].restartCount).toBe(3);
      await eventually(() =>
        expect(log.ofPod(metadata.uid).filter((step) => step.startsWith("Died main"))).toEqual(
          [1, 2, 3, 0].map((code) => `Died main ${code}`),
        ),
      );
    });

    it("when a liveness probe kills a container", async () => {
      const script = `trap 'exit 9' TERM
echo > /kept/alive
if [ ! -e /kept/once ]; then echo > /kept/once; sleep 2; /bin/busybox rm /kept/alive; fi
while true; do sleep 0.1; done`;
      const livenessProbe = {
        exec: { command: ["/bin/cat", "/kept/alive"] },
        ...{ initialDelaySeconds: 1, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 60 },
      };
      const { metadata } = await create(
        pod("probed", {
          containers: [container({ command: shell(script), livenessProbe, ...kept })],
          ...memory,
        }),
      );
      const started = ["Started sandbox", "Started main"];
      await eventually(() =>
        expect(log.ofPod(metadata.uid).filter((step) => !step.startsWith("Removed"))).toEqual([
          ...started,
          "Died main 9",
          "Started main",
        ]),
      );
      await eventually(async () =>
        expect((await statusOf("probed")).containerStatuses[0]).toMatchObject({
          restartCount: 1,
          ready: true,
          lastState: { terminated: { exitCode: 9 } },
        }),
      );
    });

    it("with an init container, and a sidecar that outlives the main one", async () => {
      const initContainers = [
        container({ name: "first", command: ["/bin/true"] }),
        container({ name: "sidecar", restartPolicy: "Always", command: wellBehaved }),
      ];
      const main = container({ command: shell("sleep 1; exit 0") });
      const { metadata } = await create(
        pod("staged", { initContainers, containers: [main], restartPolicy: "Never" }),
      );
      await eventually(() =>
        // The first may end before it is read.
        expect(
          log
            .ofPod(metadata.uid)
            .filter((step) => step !== "Started first")
            .slice(0, 6),
        ).toEqual([
          "Started sandbox",
          "Died first 0",
          "Started sidecar",
          "Started main",
          "Died main 0",
          "Died sidecar 0",
        ]),
      );
      await eventually(async () => expect((await statusOf("staged")).phase).toBe("Succeeded"));
    });

    it("as a static pod, which explain finds by its mirror", async () => {
      node.writeStaticPod("rooted", pod("rooted"));
      const mirror = await untilPodReady(cluster, `rooted-${node.name}`);
      const uid = mirror.metadata.annotations["kubernetes.io/config.hash"];
      expect(uid).not.toBe(mirror.metadata.uid);
      await eventually(() => expect(log.ofPod(uid)).toEqual(["Started sandbox", "Started main"]));
      await untilSameView(node, client);
      await eventually(async () =>
        expect(await agent.command("explain", "pod", `default/rooted-${node.name}`)).toContain(
          "container main started",
        ),
      );
      node.writeStaticPod("rooted");
      await untilDeleted(cluster, `rooted-${node.name}`);
      await eventually(() => expect(log.ofPod(uid).slice(2, 3)).toEqual(["Died main 0"]));
    });
  });
});
