import { rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildKubectlPlugin } from "../../scripts/kubectl-plugin.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "../support/eviction-plugin.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Containerd } from "./support/containerd.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { CriClient } from "./support/cri-client.ts";
import { PluginUser } from "./support/kubectl-plugin.ts";
import { containerdParts, controlPlaneParts, missingParts } from "./support/parts.ts";
import { TestKubelet } from "./support/test-kubelet.ts";
import { VictoriaLogsServer } from "./support/victoria-logs.ts";

const NODE = "worker-1";
const pods = "/api/v1/namespaces/default/pods";
const missing =
  process.getuid?.() !== 0 || missingParts(...controlPlaneParts, ...containerdParts, "victoriaLogs");
const sleeping = ["/bin/sh", "-c", "trap 'exit 143' TERM; while true; do sleep 0.1; done"];

// The records of a node, read from a laptop after the node was deleted with its disk.
describe.skipIf(missing)("the archive of a node that is gone, in a real VictoriaLogs", () => {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let kubelet: TestKubelet;
  let agent: AgentProcess;
  let plugin: TestEvictionPlugin;
  let store: VictoriaLogsServer;
  let user: PluginUser;
  /** What the agent said of each pod. */
  const said = new Map<string, string>();

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    store = await VictoriaLogsServer.start(join(cluster.directory, "store"));
    containerd = await Containerd.start(join(cluster.directory, "containerd"), "containerd");
    cri = new CriClient(containerd);
    kubelet = new TestKubelet(cluster, cri, NODE, () => sleeping);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        "runtime-endpoint": `unix://${containerd.socket}`,
        "eviction-sync-period": "1s",
        "archive-endpoint": store.endpoint,
        "archive-interval": "100ms",
        "archive-traces": "false",
      },
    });
    await agent.ready();
    plugin = await startEvictionPlugin(agent.pluginDirectory, "pressure");
    await eventually(async () => expect(plugin.registered).toBe(true));
    await buildKubectlPlugin(cluster.directory);
    user = await PluginUser.create(cluster, {
      ...{ name: "ann", group: "system:masters" },
      plugin: join(cluster.directory, "kubectl-nodekeeper.cjs"),
    });
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await kubelet?.stop();
    cri?.close();
    await containerd?.stop();
    await store?.child.stop();
    await cluster?.stop();
  });

  async function addPod(name: string): Promise<void> {
    await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 5,
        restartPolicy: "Never",
        containers: [{ name: "main", image: "app" }],
      },
    });
    await eventually(async () => {
      const { status }: ApiObject = await cluster.admin.get(`${pods}/${name}`);
      expect([status.phase, kubelet.problems]).toEqual(["Running", []]);
    });
  }

  /** Keeps what the agent says of a pod, once it is what is expected. */
  async function saidOf(name: string, expected: RegExp): Promise<void> {
    await eventually(async () => {
      const page = await agent.command("explain", "pod", `default/${name}`);
      expect(page).toMatch(expected);
      said.set(name, page);
    });
  }

  const archived = (...args: string[]) => user.run(...args, "--archive", store.url);

  /** A page without the lines at its end, which differ: how far back the records go. */
  const told = (page: string) => page.slice(0, page.indexOf("\nRecords go back to "));

  it("is as the agent said, and says that the archive answered", async () => {
    await addPod("evicted");
    await addPod("by-hand");
    plugin.top = pick(["evicted"]);
    plugin.threshold = { ...hardPressure };
    await eventually(async () => {
      await expect(cluster.admin.get(`${pods}/evicted`)).rejects.toThrow();
    });
    plugin.threshold = {};
    await cluster.kubectl.run("delete", "pod", "by-hand", "--wait=true", "--grace-period=5");
    await saidOf(
      "evicted",
      /\nEvicted at .*Container main exited with code 143\..*eviction terminated|\nEvicted at /s,
    );
    await saidOf("by-hand", /not by Nodekeeper\. Container main exited with code 143\./);
    await eventually(async () => {
      const rows = await store.query('"nodekeeper.result":="terminated" | stats count() rows');
      expect(rows).toEqual([{ rows: "1" }]);
    });
    await saidOf("evicted", /Evicted at /);

    await agent.child.stop();
    rmSync(join(cluster.directory, `agent-${NODE}`, "state"), { recursive: true });
    await cluster.admin.delete(`/api/v1/nodes/${NODE}`);

    for (const [name, page] of said) {
      const { stdout, stderr, status } = await archived("explain", "pod", `default/${name}`);
      if (process.env.SHOW_EXPLAIN) console.log(page, stdout, stderr);
      expect([status, stderr]).toEqual([0, ""]);
      expect(told(stdout)).toBe(told(page));
      expect(stdout).toMatch(
        new RegExp(
          `\\nAnswered by the archive ${store.url}: records of node ${NODE} from \\S+Z to \\S+Z\\.\\n`,
        ),
      );
    }
  });
});
