import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rootDirectory } from "../support/owned-directory.ts";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { container, pod, podsPath } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode } from "./support/node.ts";

const DRIVER = "held.example.com";
const resources = "/apis/resource.k8s.io/v1";
const claimsPath = `${resources}/namespaces/default/resourceclaims`;

/** One line for each start of the container: the device it has, and the UID of the claim that it was set up for. */
const command = ["/bin/sh", "-c", 'echo "started with $DEVICE for $(cat /run/device)"; exec sleep 1000000'];

describe.skipIf(missingForNode())("killed between each two steps of a claim", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  let driver: Child;
  let directory: string;
  const ends: Array<() => unknown> = [];

  beforeAll(async () => {
    const started = await startClaimsNode();
    ({ cluster, node, agent } = started);
    ends.push(() => started.stop());
    // The node has a /run and a /var/lib of its own.
    const held = rootDirectory(homedir());
    directory = held.path;
    ends.push(() => held.remove());
    mkdirSync(join(directory, "hold"));
    driver = new Child({
      name: "driver",
      command: process.execPath,
      args: [join(import.meta.dirname, "support/held-driver.ts"), DRIVER, agent.pluginDirectory, directory],
      logFile: join(cluster.directory, "held.log"),
    });
    driver.start();
    ends.push(() => driver.stop());
    await cluster.admin.create(`${resources}/deviceclasses`, {
      apiVersion: "resource.k8s.io/v1",
      kind: "DeviceClass",
      metadata: { name: DRIVER },
      spec: { selectors: [{ cel: { expression: `device.driver == "${DRIVER}"` } }] },
    });
    // A pod that comes before the kubelet has registered the driver is tried again a minute later.
    await eventually(() => expect(agent.child.log).toContain("registered with the kubelet"));
  });
  afterAll(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const cdi = () => node.path("/run/cdi");
  const cdiFiles = () => readdirSync(cdi()).filter((name) => name.endsWith(".yaml"));
  const isHeld = (step: string, name: string) => existsSync(join(directory, "at", `${step}-${name}`));
  const hold = (step: string, name: string) => writeFileSync(join(directory, "hold", `${step}-${name}`), "");
  const releaseAll = () => {
    for (const name of readdirSync(join(directory, "hold"))) rmSync(join(directory, "hold", name));
  };
  const kubeletState = () => readFileSync(node.path("/var/lib/kubelet/dra_manager_state"), "utf8");

  // A change of a pod makes the kubelet look at it at once; what failed it would try again a minute later.
  let touchedAt = 0;
  async function touch(names: readonly string[]): Promise<void> {
    if (names.length === 0 || Date.now() - touchedAt < 2_000) return;
    touchedAt = Date.now();
    // One of them may be deleted meanwhile.
    await cluster.kubectl
      .run("annotate", "pods", ...names, "--overwrite", `touched=${touchedAt}`)
      .catch(() => {});
  }

  async function startPods(names: readonly string[]): Promise<Map<string, string>> {
    const uids = new Map<string, string>();
    for (const name of names) {
      const claim = await cluster.admin.create(claimsPath, {
        apiVersion: "resource.k8s.io/v1",
        kind: "ResourceClaim",
        metadata: { name },
        spec: { devices: { requests: [{ name: "device", exactly: { deviceClassName: DRIVER } }] } },
      });
      uids.set(name, claim.metadata.uid);
      await startPod(name, name);
    }
    return uids;
  }

  async function startPod(name: string, resourceClaimName: string): Promise<void> {
    const spec = {
      resourceClaims: [{ name: "device", resourceClaimName }],
      containers: [container({ command, resources: { claims: [{ name: "device" }] } })],
      terminationGracePeriodSeconds: 1,
    };
    await cluster.admin.create(podsPath, pod(name, spec));
  }

  /** Every start of the container had its device, set up for its claim; the kubelet and the runtime have it running. */
  async function expectRunning(uids: ReadonlyMap<string, string>): Promise<void> {
    await touch([...uids.keys()]);
    const { items } = await node.kubeletServer.get("/pods");
    const devices = [...uids].map(([name, uid]) => {
      const found = items.find(({ metadata }: ApiObject) => metadata.name === name);
      expect(found.status.containerStatuses).toMatchObject([{ state: { running: {} } }]);
      const lines = node.logOf(found, "main").trim().split("\n");
      for (const line of lines) expect(line).toMatch(new RegExp(`^started with device-\\d for ${uid}$`));
      expect(kubeletState()).toContain(uid);
      return lines.at(-1)!.split(" ")[2];
    });
    expect(new Set(devices).size).toBe(devices.length);
    expect(cdiFiles()).toHaveLength(devices.length);
  }

  async function expectNothingPrepared(uids: ReadonlyMap<string, string>): Promise<void> {
    const { items } = await cluster.admin.get(podsPath);
    await touch(items.map(({ metadata }: ApiObject) => metadata.name));
    expect(items).toEqual([]);
    for (const uid of uids.values()) expect(kubeletState()).not.toContain(uid);
    expect(cdiFiles()).toEqual([]);
    expect(readdirSync(join(directory, "setup"))).toEqual([]);
  }

  it.each<[string, () => Child[], () => void]>([
    ["driver", () => [driver], () => {}],
    ["agent", () => [agent.child], () => {}],
    ["kubelet", () => [node.kubelet], () => {}],
    [
      "agent and kubelet, with the CDI directory emptied",
      () => [agent.child, node.kubelet],
      () => {
        for (const name of readdirSync(cdi())) rmSync(join(cdi(), name));
      },
    ],
  ])("%s: pods run with their devices, and nothing stays prepared", async (victim, children, meanwhile) => {
    const [asked, done, written] = ["asked", "done", "written"].map(
      (step) => `${victim.split(" ")[0]}${children().length}-${step}`,
    );
    const strike = async () => {
      for (const child of children()) await child.kill();
      meanwhile();
      releaseAll();
      for (const child of children()) child.start();
    };

    hold("prepare", asked!);
    hold("prepared", done!);
    const uids = await startPods([asked!, done!, written!]);
    await eventually(() => {
      expect(isHeld("prepare", asked!) && isHeld("prepared", done!)).toBe(true);
      expect(cdiFiles().some((name) => name.includes(uids.get(written!)!))).toBe(true);
    });
    await strike();
    await eventually(() => expectRunning(uids));

    hold("unprepare", asked!);
    hold("unprepared", done!);
    for (const name of uids.keys()) await cluster.admin.delete(`${podsPath}/${name}`);
    await eventually(() => {
      expect(isHeld("unprepare", asked!) && isHeld("unprepared", done!)).toBe(true);
      expect(cdiFiles().some((name) => name.includes(uids.get(written!)!))).toBe(false);
    });
    await strike();
    await eventually(() => expectNothingPrepared(uids));
    for (const name of uids.keys()) await cluster.admin.delete(`${claimsPath}/${name}`);
  });

  it("agent: a pod runs with a claim that the kubelet could not unprepare for the pod before, and does not prepare again", async () => {
    const uids = await startPods(["shared"]);
    await eventually(() => expectRunning(uids));
    hold("unprepare", "shared");
    await cluster.admin.delete(`${podsPath}/shared`);
    await eventually(() => expect(isHeld("unprepare", "shared")).toBe(true));
    await startPod("later", "shared");
    const untilStarted = async (reason: string) => {
      const { status } = await cluster.admin.get(`${podsPath}/later`);
      expect(status.containerStatuses).toMatchObject([{ state: { waiting: { reason } } }]);
    };
    await eventually(() => untilStarted("CreateContainerError"));
    await agent.child.kill();
    releaseAll();
    agent.child.start();
    await eventually(() => expectRunning(new Map([["later", uids.get("shared")!]])));
    expect(agent.child.log).toContain("claim prepared again for pods that the kubelet does not call for");
    await cluster.admin.delete(`${podsPath}/later`);
    await eventually(() => expectNothingPrepared(uids));
    await cluster.admin.delete(`${claimsPath}/shared`);
  });
});
