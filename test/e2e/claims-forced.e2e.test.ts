import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { ClaimDriver } from "./support/node/claim-driver.ts";
import { claiming, claimSpec, createClaimTemplate, createDeviceClass } from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { RuntimeRecord } from "./support/node/runtime-record.ts";
import { container, pod, podsPath, untilPodReady } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode } from "./support/node.ts";

const DRIVER = "forced.example.com";
const PODS = ["pod-0", "pod-1", "pod-2", "pod-3"];

/** A pod that claims the one device there is. Its container ignores SIGTERM: the kubelet kills it after the grace period. */
function stubborn(name: string): ApiObject {
  const command = ["/bin/sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"];
  return pod(name, {
    ...claiming({ resourceClaimTemplateName: "forced" }),
    containers: [container({ command, resources: { claims: [{ name: "devices" }] } })],
    terminationGracePeriodSeconds: 4,
  });
}

// containerd 2.x: its events reach every subscriber.
describe.skipIf(missingForNode("newContainerd"))("pods that are deleted by force, and one device", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  const ends: Array<() => unknown> = [];

  beforeAll(async () => {
    const started = await startClaimsNode({ containerd: "newContainerd" });
    ({ cluster, node, agent } = started);
    ends.push(() => started.stop());
  });
  afterAll(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  it("each pod gets the device when the container of the pod before has ended, at the kubelet's first call", async () => {
    const record = RuntimeRecord.start(cluster, node);
    ends.push(() => record.stop());
    const calls: { at: number; call: string }[] = [];
    const note = (call: string) => calls.push({ at: Date.now(), call });
    const driver = new ClaimDriver({
      name: DRIVER,
      socketDir: agent.pluginDirectory,
      pool: { devices: [{ name: "accelerator-0" }] },
      onPrepare: ({ pods }) => note(`prepare ${pods[0]?.name}`),
      onUnprepare: ({ pods }) => note(`unprepare ${pods[0]?.name}`),
    });
    ends.push(() => driver.stop());
    await createDeviceClass(cluster, DRIVER);
    await createClaimTemplate(cluster, "forced", claimSpec(DRIVER));
    // If a pod starts before the kubelet has registered the driver, the kubelet retries only a minute later.
    await eventually(() => expect(agent.child.log).toContain("registered with the kubelet"));

    const containers = new Map<string, string>();
    for (const [at, name] of PODS.entries()) {
      await cluster.admin.create(podsPath, stubborn(name));
      // The next pod is pending until the claim of the one before is deleted: seconds before its container ends.
      if (at > 0) await cluster.admin.delete(`${podsPath}/${PODS[at - 1]}?gracePeriodSeconds=0`);
      const { status } = await untilPodReady(cluster, name);
      containers.set(name, status.containerStatuses[0].containerID.replace("containerd://", ""));
    }

    const waited: number[] = [];
    await eventually(() => {
      const lives = record.lives();
      waited.length = 0;
      for (const [at, name] of PODS.entries()) {
        if (at === 0) continue;
        const before = lives.get(containers.get(PODS[at - 1]!)!)!;
        const own = lives.get(containers.get(name)!)!;
        const atOf = (call: string) => calls.find((each) => each.call === call)?.at;
        expect(before.exitCode).toBe(137);
        // The oracle: containerd had no two containers with the device at one time.
        expect(own.startedAt).toBeGreaterThan(before.exitedAt!);
        expect(atOf(`unprepare ${PODS[at - 1]}`)).toBeGreaterThanOrEqual(before.exitedAt!);
        expect(atOf(`prepare ${name}`)).toBeGreaterThanOrEqual(before.exitedAt!);
        waited.push(own.startedAt - before.exitedAt!);
      }
    });
    console.log(
      `from the end of a container to the start of the next: ${waited.map((ms) => `${ms} ms`).join()}`,
    );
    // One call each, and no refusal: after one, the kubelet starts the pod 60 to 90 s later.
    expect(calls.filter(({ call }) => call.startsWith("prepare"))).toHaveLength(PODS.length);
    const { items } = await cluster.admin.get("/api/v1/namespaces/default/events");
    const refusals = items.filter(({ reason }: ApiObject) => reason === "FailedPrepareDynamicResources");
    expect(refusals.map(({ message }: ApiObject) => message)).toEqual([]);
  });
});
