import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LatestValue } from "@nodekeeper/core/lib";
import { type DeviceStatus, serveDeviceDriver } from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess, type AgentProcessOptions } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { claiming, claimSpec, createDeviceClass, resources } from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { pod, podsPath, untilDeleted, untilPodReady } from "./support/node/workloads.ts";
import { missingForNode } from "./support/node.ts";
import { installOptionalRights } from "./support/nodekeeper-install.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";

const DRIVER = "nic.example.com";
const NODE = "worker-1";
const claims = `${resources}/namespaces/default/resourceclaims`;
const enabled = { "devices-kubelet-plugin-enabled": "true", "devices-kubelet-plugin-device-status": "true" };

const ends: Array<() => unknown> = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Serves a driver of two devices that reports what the result is set to. */
async function serve(socketDir: string): Promise<LatestValue<DeviceStatus[]>> {
  const reports = new LatestValue<DeviceStatus[]>();
  reports.set([]);
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir,
    async *devices() {
      yield [{ devices: [{ name: "nic-0" }, { name: "nic-1" }] }];
    },
    prepare: ({ devices }) => devices.map(({ request, pool, device }) => ({ request, pool, device })),
    unprepare: () => {},
    async *status(signal) {
      for (;;) yield await reports.take(signal);
    },
  });
  ends.push(() => driver.stop());
  await driver.ready;
  return reports;
}

const statusOf = async ({ admin }: ControlPlane, name: string): Promise<ApiObject[]> =>
  (await admin.get(`${claims}/${name}`)).status?.devices ?? [];
const ready = (claimUid: string, device: string, status: "True" | "False" = "True"): DeviceStatus => ({
  claimUid,
  device,
  conditions: [{ type: "Ready", status, reason: "Configured" }],
});

describe.skipIf(missingParts(...controlPlaneParts))("the status of devices in kube-apiserver", () => {
  /** A control plane and an agent whose kubelet is the test. */
  async function start(flags: readonly string[] = [], options: Partial<AgentProcessOptions> = {}) {
    const directory = mkdtempSync(join(tmpdir(), "nkd-"));
    ends.push(() => rmSync(directory, { recursive: true }));
    const cluster = await startControlPlane({ flags });
    ends.push(() => cluster.stop());
    await cluster.addNode(NODE);
    await installOptionalRights(cluster);
    const agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        ...enabled,
        "devices-kubelet-plugin-registry-directory": join(directory, "registry"),
        "devices-kubelet-plugin-cdi-directory": join(directory, "cdi"),
      },
      ...options,
    });
    ends.push(() => agent.child.stop());
    const reports = await serve(agent.pluginDirectory);
    const kubelet = new DraKubelet(join(directory, "registry"));
    ends.push(() => kubelet[Symbol.dispose]());
    return { cluster, agent, reports, kubelet };
  }

  /** Creates a claim, allocates it as the scheduler does, and has it prepared. */
  async function prepared({ admin }: ControlPlane, kubelet: DraKubelet, name: string, devices: string[]) {
    const claim = await admin.create(claims, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name },
      spec: claimSpec(DRIVER, { count: devices.length }),
    });
    const results = devices.map((device) => ({
      request: "accelerators",
      driver: DRIVER,
      pool: NODE,
      device,
    }));
    const matchFields = [{ key: "metadata.name", operator: "In", values: [NODE] }];
    const nodeSelector = { nodeSelectorTerms: [{ matchFields }] };
    await admin.patch(`${claims}/${name}/status`, {
      status: { allocation: { devices: { results }, nodeSelector } },
    });
    const reference = { namespace: "default", name, uid: claim.metadata.uid as string };
    const answers = await kubelet.prepare(DRIVER, reference);
    expect(answers[reference.uid]?.error).toBe("");
    return reference;
  }

  it("is stored up to every limit, beside that of others, and removed by an agent that was killed", async () => {
    const { cluster, agent, reports, kubelet } = await start();
    const claim = await prepared(cluster, kubelet, "limits", ["nic-0", "nic-1"]);
    const theirs = { driver: DRIVER, pool: NODE, device: "nic-1", networkData: { interfaceName: "theirs" } };
    await cluster.admin.apply(`${claims}/limits/status`, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "limits" },
      status: { devices: [theirs] },
    });
    const data = { text: "x".repeat(10_240 - '{"text":""}'.length) };
    const networkData = {
      interfaceName: "i".repeat(256),
      ips: Array.from({ length: 16 }, (_, at) =>
        at % 2 === 0 ? `192.0.2.${at}/24` : `2001:db8:0:1::${at}/64`,
      ),
      hardwareAddress: "h".repeat(128),
    };
    const conditions = Array.from({ length: 8 }, (_, at) => ({
      type: `example.com/Type${at}`,
      status: "Unknown" as const,
      reason: "R".repeat(1_024),
      message: "m".repeat(32_768),
    }));
    reports.set([
      { claimUid: claim.uid, device: "nic-0", conditions, data, networkData },
      ready(claim.uid, "nic-1"),
    ]);
    await eventually(async () => expect(await statusOf(cluster, "limits")).toHaveLength(2));
    const entries = Object.fromEntries(
      (await statusOf(cluster, "limits")).map((each) => [each.device, each]),
    );
    expect(entries["nic-0"]).toMatchObject({ driver: DRIVER, pool: NODE, conditions, data, networkData });
    expect(entries["nic-1"]).toMatchObject({ ...theirs, conditions: [{ type: "Ready", status: "True" }] });

    // The times of conditions stay over the agent's restart, and change with their status alone.
    const before = entries["nic-1"]!.conditions[0].lastTransitionTime;
    await agent.child.kill();
    agent.child.start();
    await agent.ready();
    reports.set([{ ...ready(claim.uid, "nic-1"), data: { again: true } }]);
    await eventually(async () =>
      expect((await statusOf(cluster, "limits"))[0]?.data).toEqual({ again: true }),
    );
    expect((await statusOf(cluster, "limits"))[0]!.conditions[0].lastTransitionTime).toBe(before);
    reports.set([ready(claim.uid, "nic-1", "False")]);
    await eventually(async () =>
      expect((await statusOf(cluster, "limits"))[0]!.conditions[0].lastTransitionTime).not.toBe(before),
    );

    await kubelet.unprepare(DRIVER, claim);
    await eventually(async () => {
      const { metadata, status } = await cluster.admin.get(`${claims}/limits`);
      expect(status.devices).toEqual([expect.objectContaining(theirs)]);
      expect(status.devices[0].conditions ?? []).toEqual([]);
      const managers = metadata.managedFields.map(({ manager }: ApiObject) => manager);
      expect(managers).not.toContain(`nodekeeper/${DRIVER}/${NODE}`);
    });
  });

  it("is refused with the missing right to an agent whose token names no node, once", async () => {
    const { cluster, agent, reports, kubelet } = await start([], { unboundToken: true });
    const claim = await prepared(cluster, kubelet, "refused", ["nic-0"]);
    const attempts = () =>
      cluster.audit
        .requests({ user: agent.user })
        .filter(({ verb, objectRef }) => verb === "patch" && objectRef?.resource === "resourceclaims").length;
    for (const status of ["True", "False"] as const) {
      reports.set([ready(claim.uid, "nic-0", status)]);
      await eventually(() => expect(agent.child.log).toContain("arbitrary-node:patch"));
    }
    const refusals = agent.child.log.split("\n").filter((line) => line.includes("NK1521"));
    expect(refusals).toHaveLength(1);
    expect(refusals[0]).toContain("resourceclaims/driver");
    expect(attempts()).toBe(1);
    expect(await statusOf(cluster, "refused")).toEqual([]);
  });

  it("is given up with one message where its feature gate is off", async () => {
    const gates = ["DRAResourceClaimDeviceStatus", "DRAResourceClaimGranularStatusAuthorization"];
    const off = [...gates, "DRADeviceBindingConditions"].map((gate) => `${gate}=false`);
    const { cluster, agent, reports, kubelet } = await start([`--feature-gates=${off.join(",")}`]);
    const claim = await prepared(cluster, kubelet, "dropped", ["nic-0"]);
    reports.set([ready(claim.uid, "nic-0")]);
    await eventually(() => expect(agent.child.log).toContain("DRAResourceClaimDeviceStatus is off"));
    expect(agent.child.log.match(/NK1521/g)).toHaveLength(1);
  });
});

it.skipIf(missingForNode())(
  "a running pod's claim has the status of its device until it is unprepared",
  async () => {
    const { cluster, agent, stop } = await startClaimsNode({ flags: enabled });
    ends.push(stop);
    const reports = await serve(agent.pluginDirectory);
    await createDeviceClass(cluster, DRIVER);
    const { metadata } = await cluster.admin.create(claims, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "shared" },
      spec: claimSpec(DRIVER),
    });
    await cluster.admin.create(podsPath, pod("user", claiming({ resourceClaimName: "shared" })));
    await untilPodReady(cluster, "user");
    const { status } = await cluster.admin.get(`${claims}/shared`);
    const [{ device }] = status.allocation.devices.results;
    reports.set([ready(metadata.uid, device)]);
    await eventually(async () =>
      expect(await statusOf(cluster, "shared")).toMatchObject([{ driver: DRIVER, device }]),
    );
    await cluster.admin.delete(`${podsPath}/user`);
    await untilDeleted(cluster, "user");
    await eventually(async () => expect(await statusOf(cluster, "shared")).toEqual([]));
  },
);
