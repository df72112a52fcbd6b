import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { createClaimTemplate, resources } from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { container, pod, podsPath, untilDeleted, untilPodReady } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode } from "./support/node.ts";
import { missingParts, pathOf } from "./support/parts.ts";

// The demos of kubernetes-sigs/dra-example-driver (demo/examples, test/e2e/e2e_test.go) with its port, judged as upstream does
// by the variables of containers and the claims in the API server. Those that need gates which are off in Kubernetes 1.36 are
// left out: podgroup-resourceclaimtemplate, and device-taints-tolerations, which also needs an API that is off.
// native-resource-request needs a field of 1.37 (docs/compare-dra-helper.md); device-rules.e2e.test.ts shows that 1.36 has another.

const missing = missingForNode() ?? missingParts("goPortedDriver");

/** An instance of the driver for each way to start it, by the first label of its name. */
const instances: Readonly<Record<string, readonly string[]>> = {
  gpu: ["--num-devices=16", "--gpu-device-status"],
  shared: ["--num-devices=1", "--gpu-allow-multiple-allocations"],
  parts: ["--num-devices=1", "--gpu-partitions=4"],
  "shared-parts": ["--num-devices=1", "--gpu-partitions=4", "--gpu-allow-multiple-allocations"],
  bound: ["--num-devices=1", "--binding-conditions"],
  net: ["--device-profile=net", "--num-devices=4"],
};
const driverNames = Object.keys(instances).map((name) => `${name}.example.com`);
const claimsPath = `${resources}/namespaces/default/resourceclaims`;

const showsVariables = "env; echo ready";
const stays = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

/** A container that uses claims of its pod, or single requests of them. */
const using = (name: string, ...claims: ApiObject[]) =>
  container({
    name,
    command: ["/bin/sh", "-c", `${showsVariables}; ${stays}`],
    resources: { claims },
  });
/** A request for devices of a driver's class. */
const request = (name: string, driver = "gpu", more: ApiObject = {}) => ({
  name,
  exactly: { deviceClassName: `${driver}.example.com`, ...more },
});
const cel = (expression: string) => ({ cel: { expression } });
const gpuConfig = (requests: string[], sharing: ApiObject) => ({
  requests,
  opaque: {
    driver: "gpu.example.com",
    parameters: { apiVersion: "gpu.resource.example.com/v1alpha1", kind: "GpuConfig", sharing },
  },
});

it.skipIf(missing)("it keeps the contract", async () => {
  const directory = mkdtempSync(join(tmpdir(), "nkc-"));
  try {
    const main = join(import.meta.dirname, "../../packages/agent/src/main.ts");
    const command = `${pathOf("goPortedDriver")} --gpu-device-status --binding-conditions --socket-dir ${directory}`;
    const words = ["conformance", "driver", directory, "--command", command];
    const { stdout } = await promisify(execFile)(process.execPath, [main, ...words]);
    // It has no health to report.
    expect([...stdout.matchAll(/^skip {2}(\S+)/gm)].map(([, rule]) => rule)).toEqual(["health"]);
    expect(stdout).toMatch(/ passed, 0 failed, 1 skipped$/m);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

describe.skipIf(missing)("upstream's example driver, ported, on a real node", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  let stop: (() => Promise<void>) | undefined;
  const children: Child[] = [];

  beforeAll(async () => {
    ({ cluster, node, agent, stop } = await startClaimsNode({
      flags: { "devices-kubelet-plugin-device-status": "true" },
    }));
    for (const [name, args] of Object.entries(instances)) {
      const driver = `${name}.example.com`;
      const child = new Child({
        name: driver,
        command: pathOf("goPortedDriver"),
        args: [...args, "--driver-name", driver, "--socket-dir", agent.pluginDirectory],
        logFile: join(cluster.directory, `${driver}.log`),
      });
      children.push(child);
      child.start();
      await cluster.admin.create(`${resources}/deviceclasses`, {
        apiVersion: "resource.k8s.io/v1",
        kind: "DeviceClass",
        metadata: { name: driver },
        spec: {
          selectors: [cel(`device.driver == "${driver}"`)],
          extendedResourceName: `example.com/${name}`,
        },
      });
    }
    await eventually(async () => {
      const drivers = JSON.parse(await agent.command("devices", "-o", "json"));
      const ready = drivers.filter(({ devices, claims }: ApiObject) => devices && claims?.isPreparing);
      expect(ready.map(({ name }: ApiObject) => name).sort()).toEqual([...driverNames].sort());
    });
  });
  const created: string[] = [];
  afterEach(async () => {
    const paths = created.splice(0);
    for (const path of paths) await cluster.admin.delete(path);
    for (const path of paths) await untilDeleted(cluster, path.slice(podsPath.length + 1));
    await eventually(() => {
      const files = readdirSync(node.path("/run/cdi"));
      expect(files.filter((file) => driverNames.some((name) => file.includes(name)))).toEqual([]);
    });
  });
  afterAll(async () => {
    for (const child of children) await child.stop();
    await stop?.();
  });

  const createPod = async (name: string, spec: ApiObject) => {
    await cluster.admin.create(podsPath, pod(name, { terminationGracePeriodSeconds: 1, ...spec }));
    created.push(`${podsPath}/${name}`);
  };
  /** Creates a pod of one container with a claim of the template. */
  const createClaimingPod = (name: string, resourceClaimTemplateName: string) =>
    createPod(name, {
      resourceClaims: [{ name: "devices", resourceClaimTemplateName }],
      containers: [using("main", { name: "devices" })],
    });
  /** Variables of a container, by name. */
  const variablesOf = async (podName: string, containerName = "main"): Promise<Record<string, string>> => {
    const running = await untilPodReady(cluster, podName);
    return eventually(() => {
      const output = node.logOf(running, containerName);
      expect(output).toContain("ready");
      return Object.fromEntries(
        output.split("\n").map((line) => [line.replace(/=.*/, ""), line.replace(/^[^=]*=/, "")]),
      );
    });
  };
  /** Names of the GPUs whose variables a container has. */
  const gpusOf = (variables: Record<string, string>) =>
    Object.entries(variables)
      .filter(([name, value]) => /^GPU_DEVICE_/.test(name) && /^gpu-[\w-]+$/.test(value))
      .map(([, value]) => value);
  /** The one GPU of a container, and its variables without "GPU_DEVICE_<id>_". */
  const onlyGpuOf = (variables: Record<string, string>) => {
    const [gpu, ...others] = gpusOf(variables);
    expect(gpu).toBeDefined();
    expect(others).toEqual([]);
    const prefix = `GPU_DEVICE_${gpu!.slice(4).toUpperCase().replaceAll("-", "_")}_`;
    const own = Object.entries(variables).filter(([name]) => name.startsWith(prefix));
    return { gpu, ...Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value])) };
  };
  const claimOf = async (podName: string) => {
    const { status } = await cluster.admin.get(`${podsPath}/${podName}`);
    const { resourceClaimName } = status.resourceClaimStatuses?.[0] ?? status.extendedResourceClaimStatus;
    return cluster.admin.get(`${claimsPath}/${resourceClaimName}`);
  };

  it("basic-resourceclaimtemplate: each pod gets a GPU of its own, whose status is in its claim", async () => {
    await createClaimTemplate(cluster, "single", { devices: { requests: [request("gpu")] } });
    const gpus = new Set<string | undefined>();
    for (const name of ["pod0", "pod1"]) {
      await createClaimingPod(name, "single");
      const variables = await variablesOf(name);
      const { gpu, ...own } = onlyGpuOf(variables);
      expect(own).toEqual({ SHARING_STRATEGY: "TimeSlicing", TIMESLICE_INTERVAL: "Default" });
      gpus.add(gpu);
      await eventually(async () => {
        const { metadata, status } = await claimOf(name);
        expect(status.devices).toMatchObject([
          {
            driver: "gpu.example.com",
            pool: node.name,
            device: gpu,
            data: {
              uuid: { string: expect.stringMatching(/^gpu-[\da-f-]{36}$/) },
              model: { string: "LATEST-GPU-MODEL" },
              driverVersion: { version: "1.0.0" },
            },
          },
        ]);
        expect(variables).toMatchObject({
          [`GPU_DEVICE_${gpu!.toUpperCase().replaceAll("-", "_")}_RESOURCE_CLAIM`]: metadata.uid,
          KUBERNETES_NODE_NAME: node.name,
          DRA_RESOURCE_DRIVER_NAME: "gpu.example.com",
          DRA_ADMIN_ACCESS: "false",
        });
      });
    }
    expect(gpus.size).toBe(2);
  });

  it("a restart of the driver does not touch the status of claims that it prepared before", async () => {
    await createClaimTemplate(cluster, "kept", { devices: { requests: [request("gpu")] } });
    const untilStatus = (podName: string) =>
      eventually(async () => {
        const claim = await claimOf(podName);
        expect(claim.status.devices).toHaveLength(1);
        return claim;
      });
    await createClaimingPod("pod0", "kept");
    const before = await untilStatus("pod0");
    await children[0]!.stop();
    children[0]!.start();
    // The report that has this one has the other, too, and is not the first.
    await createClaimingPod("pod1", "kept");
    await untilStatus("pod1");
    expect(await claimOf("pod0")).toEqual(before);
  });

  it("basic-multiple-requests: one container gets two GPUs", async () => {
    await createClaimTemplate(cluster, "two", {
      devices: { requests: [request("gpu-1"), request("gpu-2")] },
    });
    await createClaimingPod("pod0", "two");
    expect(new Set(gpusOf(await variablesOf("pod0"))).size).toBe(2);
  });

  it("basic-shared-claim-across-containers, initcontainer-shared-gpu: containers share a GPU in time slices", async () => {
    await createClaimTemplate(cluster, "of-pod", { devices: { requests: [request("gpu")] } });
    const init = using("init0", { name: "shared" });
    init.command = ["/bin/sh", "-c", showsVariables];
    await createPod("pod0", {
      resourceClaims: [{ name: "shared", resourceClaimTemplateName: "of-pod" }],
      initContainers: [init],
      containers: [using("ctr0", { name: "shared" }), using("ctr1", { name: "shared" })],
    });
    const first = onlyGpuOf(await variablesOf("pod0", "ctr0"));
    expect(first).toMatchObject({ SHARING_STRATEGY: "TimeSlicing", TIMESLICE_INTERVAL: "Default" });
    for (const name of ["ctr1", "init0"]) expect(onlyGpuOf(await variablesOf("pod0", name))).toEqual(first);
  });

  it("basic-shared-claim-across-pods: pods share a GPU", async () => {
    await cluster.admin.create(claimsPath, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "of-pods" },
      spec: { devices: { requests: [request("gpu")] } },
    });
    const seen = [];
    for (const name of ["pod0", "pod1"]) {
      await createPod(name, {
        resourceClaims: [{ name: "shared", resourceClaimName: "of-pods" }],
        containers: [using("main", { name: "shared" })],
      });
      seen.push(onlyGpuOf(await variablesOf(name)));
    }
    expect(seen[1]).toEqual(seen[0]);
  });

  it("basic-resourceclaim-opaque-config: each request has its configuration", async () => {
    await createClaimTemplate(cluster, "configured", {
      devices: {
        requests: [request("ts-gpu"), request("sp-gpu")],
        config: [
          gpuConfig(["ts-gpu"], { strategy: "TimeSlicing", timeSlicingConfig: { interval: "Long" } }),
          gpuConfig(["sp-gpu"], {
            strategy: "SpacePartitioning",
            spacePartitioningConfig: { partitionCount: 10 },
          }),
        ],
      },
    });
    const names = ["ts-ctr0", "ts-ctr1", "sp-ctr0", "sp-ctr1"];
    await createPod("pod0", {
      resourceClaims: [{ name: "gpus", resourceClaimTemplateName: "configured" }],
      containers: names.map((name) => using(name, { name: "gpus", request: `${name.slice(0, 2)}-gpu` })),
    });
    const [ts0, ts1, sp0, sp1] = await Promise.all(
      names.map(async (name) => onlyGpuOf(await variablesOf("pod0", name))),
    );
    expect(ts0).toMatchObject({ SHARING_STRATEGY: "TimeSlicing", TIMESLICE_INTERVAL: "Long" });
    expect(sp0).toMatchObject({ SHARING_STRATEGY: "SpacePartitioning", PARTITION_COUNT: "10" });
    expect([ts1, sp1]).toEqual([ts0, sp0]);
    expect(ts0!.gpu).not.toBe(sp0!.gpu);
  });

  it("a configuration that upstream's webhook would reject fails the preparation, and the pod says why", async () => {
    const sharing = { strategy: "TimeSlicing", timeSlicingConfig: { interval: "InvalidInterval" } };
    await createClaimTemplate(cluster, "invalid", {
      devices: { requests: [request("gpu")], config: [gpuConfig(["gpu"], sharing)] },
    });
    await createClaimingPod("invalid", "invalid");
    await eventually(async () => {
      const { items } = await cluster.admin.get(
        "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=invalid",
      );
      const messages = items.map(({ message }: ApiObject) => message).join("\n");
      expect(messages).toContain("unknown time-slice interval");
    });
  });

  it("admin-access: a pod gets all GPUs, also those in use, and is told so", async () => {
    await cluster.admin.patch("/api/v1/namespaces/default", {
      metadata: { labels: { "resource.kubernetes.io/admin-access": "true" } },
    });
    await createClaimTemplate(cluster, "user", { devices: { requests: [request("gpu")] } });
    await createClaimingPod("user", "user");
    await createClaimTemplate(cluster, "admin", {
      devices: { requests: [request("gpu", "gpu", { allocationMode: "All", adminAccess: true })] },
    });
    await createClaimingPod("admin", "admin");
    expect((await variablesOf("user")).DRA_ADMIN_ACCESS).toBe("false");
    const variables = await variablesOf("admin");
    expect(variables.DRA_ADMIN_ACCESS).toBe("true");
    expect(gpusOf(variables)).toHaveLength(16);
  });

  it("extended-resource-request: GPUs for limits of containers", async () => {
    const gpus = new Set<string | undefined>();
    for (const [name, resource] of [
      ["pod0", "deviceclass.resource.kubernetes.io/gpu.example.com"],
      ["pod1", "example.com/gpu"],
    ] as const) {
      const main = { ...using("main"), resources: { limits: { [resource]: "1" } } };
      await createPod(name, { containers: [main] });
      gpus.add(onlyGpuOf(await variablesOf(name)).gpu);
    }
    expect(gpus.size).toBe(2);
  });

  it("cel-selector: a GPU that fits expressions", async () => {
    const selectors = [
      cel("device.attributes['gpu.example.com'].model == 'LATEST-GPU-MODEL'"),
      cel("device.capacity['gpu.example.com'].memory.compareTo(quantity('4Gi')) >= 0"),
    ];
    await createClaimTemplate(cluster, "selected", {
      devices: { requests: [request("gpu", "gpu", { selectors })] },
    });
    await createClaimingPod("pod0", "selected");
    expect(onlyGpuOf(await variablesOf("pod0")).gpu).toBeDefined();
  });

  it("prioritized-alternatives: the first alternative that fits, with the configuration of its request", async () => {
    const alternative = (name: string, expression?: string) => ({
      name,
      deviceClassName: "gpu.example.com",
      ...(expression === undefined ? {} : { selectors: [cel(expression)] }),
    });
    const firstAvailable = [
      alternative("bleeding-edge-gpu", "device.attributes['gpu.example.com'].model == 'BLEEDING-EDGE-GPU'"),
      alternative("huge-gpu", "device.capacity['gpu.example.com'].memory.compareTo(quantity('1Ti')) >= 0"),
      alternative("older-gpu"),
    ];
    await createClaimTemplate(cluster, "alternatives", {
      devices: {
        requests: [{ name: "gpu", firstAvailable }],
        config: [gpuConfig(["gpu"], { strategy: "SpacePartitioning" })],
      },
    });
    await createClaimingPod("pod0", "alternatives");
    expect(onlyGpuOf(await variablesOf("pod0"))).toMatchObject({ PARTITION_COUNT: "1" });
    const { status } = await claimOf("pod0");
    expect(status.allocation.devices.results).toMatchObject([{ request: "gpu/older-gpu" }]);
  });

  it.each([
    ["gpu-allow-multiple-allocations", "shared", { memory: "16Gi", compute: "20" }],
    ["gpu-allow-multiple-allocations-partitionable", "shared-parts", { memory: "8Gi", compute: "10" }],
  ])("%s: pods get shares of one device", async (_, driver, requests) => {
    const of = request("gpu", driver, { capacity: { requests } });
    await createClaimTemplate(cluster, driver, { devices: { requests: [of] } });
    const seen = [];
    const shares = new Set<string>();
    for (const name of ["pod0", "pod1"]) {
      await createClaimingPod(name, driver);
      seen.push(onlyGpuOf(await variablesOf(name)));
      const { status } = await claimOf(name);
      const [result] = status.allocation.devices.results;
      expect(result.consumedCapacity).toEqual(requests);
      shares.add(result.shareID);
    }
    expect(seen[0]).toMatchObject({ MEMORY: requests.memory, COMPUTE: requests.compute });
    expect(seen[1]).toEqual(seen[0]);
    expect(shares.size).toBe(2);
  });

  it("partitionable-devices: partitions of a GPU that counters limit", async () => {
    await createClaimTemplate(cluster, "parts", {
      devices: { requests: [request("gpu-partition", "parts", { count: 2 })] },
    });
    await createClaimingPod("pod0", "parts");
    expect(gpusOf(await variablesOf("pod0")).sort()).toEqual(["gpu-0-partition-0", "gpu-0-partition-1"]);
  });

  it("binding-conditions: a pod is bound once the driver says that its GPU is ready, without a controller", async () => {
    await createClaimTemplate(cluster, "bound", { devices: { requests: [request("gpu", "bound")] } });
    await createClaimingPod("pod0", "bound");
    expect(onlyGpuOf(await variablesOf("pod0")).gpu).toBe("gpu-0");
    const { status } = await claimOf("pod0");
    expect(status.allocation.devices.results).toMatchObject([{ bindingConditions: ["BindingConditions"] }]);
    const conditions = [{ type: "BindingConditions", status: "True", reason: "Ready" }];
    expect(status.devices).toMatchObject([{ driver: "bound.example.com", device: "gpu-0", conditions }]);
  });

  it("net-consumable-capacity: pods get bandwidth", async () => {
    const claims = { pod0: ["10G", "5G"], pod1: ["5G", "5G"] } as const;
    for (const [name, [ingressBandwidth, egressBandwidth]] of Object.entries(claims)) {
      const capacity = { requests: { ingressBandwidth, egressBandwidth } };
      const of = request("nic", "net", { capacity });
      await createClaimTemplate(cluster, `net-${name}`, { devices: { requests: [of] } });
      await createClaimingPod(name, `net-${name}`);
      const variables = await variablesOf(name);
      const rate = (direction: string) =>
        Object.entries(variables).find(([each]) => each.endsWith(`_${direction}_RATE`))?.[1];
      expect(rate("INGRESS")).toBe(`${Number.parseInt(ingressBandwidth, 10)}000000000`);
      expect(rate("EGRESS")).toBe(`${Number.parseInt(egressBandwidth, 10)}000000000`);
    }
  });
});
