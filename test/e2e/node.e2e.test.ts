import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { startControlPlane } from "./support/control-plane.ts";
import { removeEndedRuns } from "./support/ended-runs.ts";
import { interfacesOf, leftovers } from "./support/node/leftovers.ts";
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
import { missingForNode, startNode } from "./support/node.ts";

const ends: Array<() => unknown> = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

it.skipIf(process.getuid?.() !== 0)(
  "what a killed test process left is removed by the next one",
  async () => {
    const owner = spawn(process.execPath, [join(import.meta.dirname, "support/left-behind-driver.ts")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    ends.push(() => owner.kill("SIGKILL"));
    const [line] = (await once(createInterface(owner.stdout), "line")) as [string];
    const directory = line.trim();
    const left = () => leftovers(directory, "203.0.113.1").map((each) => each.split(" ")[0]);
    await removeEndedRuns();
    // Its owner runs.
    expect(new Set(left())).toEqual(new Set(["mount", "cgroup", "process"]));
    owner.kill("SIGKILL");
    await once(owner, "exit");
    await removeEndedRuns();
    await eventually(() => expect(left()).toEqual([]));
    expect(existsSync(directory)).toBe(false);
  },
);

// What the cases on a real node rest on.
describe.each(["containerd", "newContainerd"] as const)("a node with its kubelet on %s", (part) => {
  it.skipIf(missingForNode(part))(
    "runs the pods of a Deployment, which the agent reports, and leaves nothing behind",
    async () => {
      const cluster = await startControlPlane();
      ends.push(() => cluster.stop());
      const startedAt = Date.now();
      const node = await startNode(cluster, { containerd: part });
      ends.push(() => node.stop());
      const readyAfterMs = Date.now() - startedAt;
      const agent = await node.startAgent();
      ends.push(() => agent.child.stop());
      await agent.ready();
      const client = new PodLifecycleClient({ socket: agent.apiSocket });
      ends.push(() => client.close());

      const talkative = container({ command: ["/bin/sh", "-c", "echo from within; sleep 1000000"] });
      await cluster.admin.create(deploymentsPath, deployment("web", 2, { containers: [talkative] }));
      const pods = await untilReady(cluster, "app=web", 2);
      console.log(`${part}: Ready after ${readyAfterMs} ms, pods after ${Date.now() - startedAt} ms`);
      await eventually(async () => {
        const reported = await client.getPods();
        expect(uidsOf(reported)).toEqual(uidsOf(pods.map(({ metadata }) => metadata)));
        for (const { containers } of reported)
          expect(containers).toMatchObject([{ name: "main", state: "running" }]);
      });
      const [address] = pods.map(({ status }) => status.podIP);
      expect(interfacesOf(address)).toHaveLength(2);
      await eventually(() => {
        for (const each of pods) expect(node.logOf(each, "main")).toBe("from within\n");
      });

      await cluster.admin.create(podsPath, pod("single"));
      await untilPodReady(cluster, "single");
      await cluster.admin.delete(`${podsPath}/single`);
      await untilDeleted(cluster, "single");

      // The Deployment's pods still run: nothing has told the kubelet to end them.
      await agent.child.stop();
      await node.stop();
      await cluster.stop();
      await eventually(() => expect(leftovers(cluster.directory, address)).toEqual([]));
    },
  );
});

function uidsOf(pods: readonly ApiObject[]): string[] {
  return pods.map(({ uid }) => uid).sort();
}
