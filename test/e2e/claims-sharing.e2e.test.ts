import { readdirSync } from "node:fs";
import { serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { ClaimDriver, type ClaimDriverOptions } from "./support/node/claim-driver.ts";
import {
  type ClaimOptions,
  claiming,
  claimSpec,
  createClaimTemplate,
  createDeviceClass,
  resources,
} from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { OwnKubeletPlugin } from "./support/node/own-kubelet-plugin.ts";
import {
  deployment,
  deploymentsPath,
  pod,
  podsPath,
  untilDeleted,
  untilPodReady,
  untilReady,
} from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode } from "./support/node.ts";

const MANY = 30;
const claimsPath = `${resources}/namespaces/default/resourceclaims`;

describe.skipIf(missingForNode())("claims of many pods, and devices that pods share", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  let driver: ClaimDriver | undefined;
  let stop: (() => Promise<void>) | undefined;

  beforeAll(async () => {
    ({ cluster, node, agent, stop } = await startClaimsNode({
      flags: { "devices-cluster-pools-drivers": "fabric.example.com" },
    }));
  });
  let caseEnd: (() => unknown) | undefined;
  afterEach(async () => {
    await driver?.stop();
    await caseEnd?.();
    caseEnd = undefined;
  });
  afterAll(() => stop?.());

  /** Starts a driver, and creates its class and a template of claims, both called like it without ".example.com". */
  async function serve(
    name: string,
    options: Pick<ClaimDriverOptions, "pool" | "env">,
    claim: ClaimOptions & { classParameters?: ApiObject } = {},
  ): Promise<ClaimDriver> {
    await createDeviceClass(cluster, `${name}.example.com`, claim.classParameters);
    await createClaimTemplate(cluster, name, claimSpec(`${name}.example.com`, claim));
    driver = new ClaimDriver({ name: `${name}.example.com`, socketDir: agent.pluginDirectory, ...options });
    // If a pod starts before the kubelet has registered the driver, the kubelet retries only a minute later.
    const registered = { driver: `${name}.example.com`, msg: "registered with the kubelet" };
    await eventually(() => expect(agent.logged()).toContainEqual(expect.objectContaining(registered)));
    return driver;
  }
  const createPod = (name: string, resourceClaimTemplateName: string) =>
    cluster.admin.create(podsPath, pod(name, claiming({ resourceClaimTemplateName })));
  const outputOf = (running: ApiObject) =>
    eventually(() => {
      const output = node.logOf(running, "main");
      expect(output).toContain("ready");
      return output;
    });
  /** Waits until the scheduler has refused a pod, and gives why. */
  const untilRefused = (name: string) =>
    eventually(async () => {
      const { status } = await cluster.admin.get(`${podsPath}/${name}`);
      const scheduled = status.conditions?.find(({ type }: ApiObject) => type === "PodScheduled");
      expect(scheduled).toMatchObject({ status: "False", reason: "Unschedulable" });
      return scheduled.message as string;
    });
  const remove = async (...names: string[]) => {
    for (const name of names) await cluster.admin.delete(`${podsPath}/${name}`);
    for (const name of names) await untilDeleted(cluster, name);
  };
  const untilUnprepared = (own: ClaimDriver) =>
    eventually(() => {
      expect([...own.prepared.keys()]).toEqual([]);
      expect(readdirSync(node.path("/run/cdi")).filter((name) => name.endsWith(".yaml"))).toEqual([]);
    });

  it(`${MANY} pods that are created at once run, each with its own device`, async () => {
    const devices = Array.from({ length: MANY }, (_, number) => ({ name: `accelerator-${number}` }));
    const own = await serve("many", { pool: { devices } });
    const spec = claiming({ resourceClaimTemplateName: "many" });
    await cluster.admin.create(deploymentsPath, deployment("many", MANY, spec));
    const pods = await untilReady(cluster, "app=many", MANY);
    const outputs = await Promise.all(pods.map(outputOf));
    const used = outputs.map((output) => output.match(/^accelerator-\d+$/gm));
    expect(used.map((names) => names?.length)).toEqual(pods.map(() => 1));
    expect(new Set(used.flat()).size).toBe(MANY);
    expect(own.calls).toHaveLength(MANY);
    await cluster.admin.delete(`${deploymentsPath}/many`);
    await untilUnprepared(own);
  });

  it("a claim that two pods use is prepared once, and stays prepared until the last of them has ended", async () => {
    const own = await serve("both", { pool: { devices: [{ name: "accelerator-0" }] } });
    await cluster.admin.create(claimsPath, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "both" },
      spec: claimSpec("both.example.com"),
    });
    for (const name of ["first", "second"]) {
      await cluster.admin.create(podsPath, pod(name, claiming({ resourceClaimName: "both" })));
      expect(await outputOf(await untilPodReady(cluster, name))).toContain("ACCELERATOR=accelerator-0");
    }
    expect(own.calls).toHaveLength(1);
    await remove("first");
    expect([...own.prepared.values()]).toMatchObject([{ name: "both" }]);
    await remove("second");
    await untilUnprepared(own);
  });

  it("a device of a pool beyond the node is prepared on the node that the pod runs on", async () => {
    const pool = { name: "fabric", allNodes: true, devices: [{ name: "accelerator-0" }] };
    const own = await serve("fabric", { pool, env: (device) => ({ ACCELERATOR_POOL: device.pool }) });
    await createPod("fabric", "fabric");
    const output = await outputOf(await untilPodReady(cluster, "fabric"));
    expect(output).toContain("ACCELERATOR_POOL=fabric");
    expect(output).toMatch(/^accelerator-0$/m);
    await remove("fabric");
    await untilUnprepared(own);
  });

  it("claims get shares of one device, and no more than it has", async () => {
    const memory = {
      value: "40Gi",
      requestPolicy: { default: "10Gi", validRange: { min: "10Gi", step: "10Gi" } },
    };
    const device = { name: "accelerator-0", allowMultipleAllocations: true, capacity: { memory } };
    const own = await serve(
      "share",
      {
        pool: { devices: [device] },
        env: ({ consumedCapacity, shareId = "none" }) => ({
          ACCELERATOR_MEMORY: consumedCapacity.memory ?? consumedCapacity["share.example.com/memory"] ?? "",
          ACCELERATOR_SHARE: shareId,
        }),
      },
      { exactly: { capacity: { requests: { memory: "20Gi" } } } },
    );
    const shares = new Set<string>();
    for (const name of ["left", "right"]) {
      await createPod(name, "share");
      const output = await outputOf(await untilPodReady(cluster, name));
      expect(output).toContain("ACCELERATOR_MEMORY=20Gi");
      expect(output).toContain("accelerator-0");
      shares.add(/^ACCELERATOR_SHARE=(.+)$/m.exec(output)![1]!);
    }
    expect(shares.size).toBe(2);
    expect(shares).not.toContain("none");
    await createPod("third", "share");
    expect(await untilRefused("third")).toContain("cannot allocate all claims");
    await remove("left");
    await outputOf(await untilPodReady(cluster, "third"));
    await remove("right", "third");
    await untilUnprepared(own);
  });

  it("partitions of a device are allocated as far as their shared counters reach", async () => {
    const partition = (name: string, memory: string, kind: string) => ({
      name,
      attributes: { kind: { string: kind } },
      consumesCounters: [{ counterSet: "memory", counters: { memory } }],
    });
    const own = await serve(
      "parts",
      {
        pool: {
          sharedCounters: [{ name: "memory", counters: { memory: "40Gi" } }],
          devices: [
            partition("accelerator-whole", "40Gi", "whole"),
            partition("accelerator-half-0", "20Gi", "half"),
            partition("accelerator-half-1", "20Gi", "half"),
          ],
        },
      },
      { exactly: kindIs("parts.example.com", "half") },
    );
    const whole = claimSpec("parts.example.com", { exactly: kindIs("parts.example.com", "whole") });
    await createClaimTemplate(cluster, "whole", whole);
    for (const name of ["half-a", "half-b"]) await createPod(name, "parts");
    const halves = [];
    for (const name of ["half-a", "half-b"]) {
      const output = await outputOf(await untilPodReady(cluster, name));
      halves.push(/^ACCELERATOR=(.+)$/m.exec(output)![1]);
    }
    expect(halves.sort()).toEqual(["accelerator-half-0", "accelerator-half-1"]);
    await createPod("whole", "whole");
    await untilRefused("whole");
    await remove("half-a", "half-b");
    expect(await outputOf(await untilPodReady(cluster, "whole"))).toContain("ACCELERATOR=accelerator-whole");
    await remove("whole");
    await untilUnprepared(own);
  });

  it("the driver gets the configuration of the class before that of the claim", async () => {
    const own = await serve(
      "order",
      {
        pool: { devices: [{ name: "accelerator-0" }] },
        env: ({ configuration }) => ({
          ACCELERATOR_MODES: configuration
            .map(({ source, parameters }) => `${source}:${(parameters as { mode: string }).mode}`)
            .join(),
        }),
      },
      { classParameters: { mode: "usual" }, parameters: { mode: "special" } },
    );
    await createPod("ordered", "order");
    const output = await outputOf(await untilPodReady(cluster, "ordered"));
    expect(output).toContain("ACCELERATOR_MODES=FromClass:usual,FromClaim:special");
    await remove("ordered");
    await untilUnprepared(own);
  });

  it("devices that need no preparation: their pods run as they are", async () => {
    const name = "plain.example.com";
    const own = serveDeviceDriver({
      name,
      socketDir: agent.pluginDirectory,
      async *devices() {
        yield [{ devices: [{ name: "accelerator-0" }] }];
      },
    });
    caseEnd = () => own.stop();
    await createDeviceClass(cluster, name);
    await createClaimTemplate(cluster, "plain", claimSpec(name));
    await createPod("plain", "plain");
    expect(await outputOf(await untilPodReady(cluster, "plain"))).toBe("ready\n");
    await remove("plain");
  });

  it("the claims of a driver that keeps its own kubelet plugin are prepared by that alone", async () => {
    const name = "own.example.com";
    const own = serveDeviceDriver({
      name,
      socketDir: agent.pluginDirectory,
      ownKubeletPlugin: true,
      async *devices() {
        yield [{ devices: [{ name: "accelerator-0" }] }];
      },
    });
    const plugin = new OwnKubeletPlugin(node.path("/var/lib/kubelet/plugins_registry/own.sock"));
    caseEnd = async () => {
      plugin.stop();
      await own.stop();
    };
    const device = { request: "accelerators", pool: node.name, device: "accelerator-0" };
    await plugin.start(name, device);
    await createDeviceClass(cluster, name);
    await createClaimTemplate(cluster, "own", claimSpec(name));
    await createPod("own", "own");
    expect(await outputOf(await untilPodReady(cluster, "own"))).toBe("ready\n");
    expect(plugin.calls.prepared).toHaveLength(1);
    const drivers = JSON.parse(await agent.command("devices", "-o", "json"));
    const found = drivers.find((each: ApiObject) => each.name === name);
    expect(found.claims).toMatchObject({ kubelet: "ownPlugin", claims: [] });
    await remove("own");
    await eventually(() => expect(plugin.calls.unprepared).toEqual(plugin.calls.prepared));
  });

  it("a device that turns unhealthy repels new pods until it is healthy again", async () => {
    const own = await serve("sick", { pool: { devices: [{ name: "accelerator-0" }] } });
    await createPod("before", "sick");
    await untilPodReady(cluster, "before");
    const healthOf = async () => {
      const { status } = await cluster.admin.get(`${podsPath}/before`);
      return status.containerStatuses[0].allocatedResourcesStatus?.[0]?.resources[0]?.health;
    };
    await eventually(async () => expect(await healthOf()).toBe("Healthy"));
    own.setUnhealthy("accelerator-0");
    await eventually(async () => expect(await healthOf()).toBe("Unhealthy"));
    await remove("before");
    await createPod("after", "sick");
    await untilRefused("after");
    own.setUnhealthy();
    await untilPodReady(cluster, "after");
    await remove("after");
    await untilUnprepared(own);
  });
});

/** Selects the devices of a driver whose attribute "kind" has this value. */
function kindIs(driver: string, kind: string): ApiObject {
  return { selectors: [{ cel: { expression: `device.attributes["${driver}"].kind == "${kind}"` } }] };
}
