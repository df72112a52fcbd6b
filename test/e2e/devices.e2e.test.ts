import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allocatable } from "../../packages/agent/src/devices/testing/allocatable.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { policiesFile } from "./support/nodekeeper-install.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const missing = missingParts(
  "etcd",
  "openssl",
  "kubeApiServer",
  "oldKubeApiServer",
  "kubectl",
  "cnrDefinition",
  "goDriver",
);
const NODE = "worker-1";
const GO_DRIVER = "gpu.example.com";
const SAMPLE = "accelerators.example.com";
const CHAOS_S = Number(process.env.E2E_CHAOS_SECONDS ?? 120);
const sampleMain = join(import.meta.dirname, "../../examples/driver/main.ts");

const servers = [
  { apiServer: "kubeApiServer", version: "v1", flags: [] },
  {
    apiServer: "oldKubeApiServer",
    version: "v1alpha2",
    flags: [
      "--feature-gates=DynamicResourceAllocation=true",
      "--runtime-config=resource.k8s.io/v1alpha2=true",
    ],
  },
] as const;

describe.skipIf(missing).each(servers)(
  "devices on $apiServer ($version)",
  ({ apiServer, version, flags }) => {
    const path = `/apis/resource.k8s.io/${version}/resourceslices`;
    let cluster: ControlPlane;
    let agent: AgentProcess;
    let goDriver: Child;
    let sample: Child;
    let driverFile: string;

    /** What the Go driver has: so many instances, each with a version and some memory. */
    function say(count: number): void {
      const instances = Array.from({ length: count }, (_, at) => ({
        name: `gpu-${at}`,
        attributes: [
          { name: "driver-version", version: "1.2.3" },
          { name: "memory", quantity: "40Gi" },
        ],
      }));
      writeFileSync(`${driverFile}.new`, JSON.stringify({ instances }));
      renameSync(`${driverFile}.new`, driverFile);
    }

    async function slices(driver: string): Promise<ApiObject[]> {
      const { items } = await cluster.admin.get(path);
      return items.filter((item: ApiObject) => (item.spec?.driver ?? item.driverName) === driver);
    }

    /** Names of the devices of a driver that kube-scheduler would allocate. */
    async function devices(driver: string): Promise<string[]> {
      const all = (await slices(driver)).map((slice) => ({
        ...slice,
        apiVersion: `resource.k8s.io/${version}`,
        metadata: slice.metadata ?? {},
      }));
      return allocatable(all, NODE).devices.sort();
    }

    const names = (count: number) => Array.from({ length: count }, (_, at) => `gpu-${at}`).sort();

    beforeAll(async () => {
      cluster = await startControlPlane({ apiServer, flags: [...flags] });
      await cluster.addNode(NODE);
      if (version === "v1") await cluster.kubectl.run("apply", "-f", policiesFile);
      agent = await AgentProcess.start(cluster, {
        nodeName: NODE,
        flags: { "devices-wipe-delay": "5s", "devices-settle-time": "10s" },
      });
      await agent.ready();
      driverFile = join(cluster.directory, "devices.json");
      say(3);
      goDriver = new Child({
        name: "Go driver",
        command: pathOf("goDriver"),
        args: [`--name=${GO_DRIVER}`, `--directory=${agent.pluginDirectory}`, `--file=${driverFile}`],
        logFile: join(cluster.directory, "go-driver.log"),
      });
      goDriver.start();
      sample = new Child({
        name: "sample driver",
        command: process.execPath,
        args: [sampleMain, "--socket-dir", agent.pluginDirectory, "--count", "300", "--interval", "1s"],
        logFile: join(cluster.directory, "sample-driver.log"),
      });
      sample.start();
    });

    afterAll(async () => {
      await sample?.stop();
      await goDriver?.stop();
      await agent?.child.stop();
      await cluster?.stop();
    });

    it("a driver of 1.30, in Go, is published as it changes", async () => {
      await eventually(async () => expect(await devices(GO_DRIVER)).toEqual(names(3)));
      const [slice] = await slices(GO_DRIVER);
      expect(slice?.metadata.ownerReferences).toMatchObject([{ kind: "Node", name: NODE }]);
      say(5);
      await eventually(async () => expect(await devices(GO_DRIVER)).toEqual(names(5)));
      say(4);
      await eventually(async () => expect(await devices(GO_DRIVER)).toEqual(names(4)));
    });

    it("the sample driver's 300 devices are in as many slices as it takes", async () => {
      await eventually(async () => expect(await devices(SAMPLE)).toHaveLength(300));
      expect(await slices(SAMPLE)).toHaveLength(version === "v1" ? 3 : 1);
      const listed = await cluster.kubectl.run("get", "resourceslices");
      expect(listed).toContain(GO_DRIVER);
      expect(listed).toContain(SAMPLE);
    });

    it("a slice deleted by hand is recreated", async () => {
      const [before] = await slices(GO_DRIVER);
      await cluster.kubectl.run("delete", "resourceslice", before!.metadata.name!, "--wait=false");
      await eventually(async () => {
        const [now] = await slices(GO_DRIVER);
        expect(now?.metadata.uid).toBeDefined();
        expect(now?.metadata.uid).not.toBe(before?.metadata.uid);
      });
    });

    it.runIf(version === "v1")("the policy refuses the agent another node's slices", async () => {
      const [own] = await slices(GO_DRIVER);
      const { resourceVersion, uid, ...metadata } = own!.metadata as Record<string, unknown>;
      void resourceVersion;
      void uid;
      const foreign = {
        ...own,
        apiVersion: "resource.k8s.io/v1",
        kind: "ResourceSlice",
        metadata: { ...metadata, name: "foreign" },
        spec: { ...(own!.spec as object), nodeName: "worker-2" },
      };
      const file = join(cluster.directory, "foreign.json");
      writeFileSync(file, JSON.stringify(foreign));
      const asAgent = (extra: string) =>
        cluster.kubectl
          .run(
            "create",
            "-f",
            file,
            `--as=${agent.user}`,
            "--as-user-extra",
            `authentication.kubernetes.io/node-name=${extra}`,
          )
          .then(
            () => "created",
            (error: Error) => error.message,
          );
      expect(await asAgent(NODE)).toContain(
        `the agent on node ${NODE} may not write resourceslices of node worker-2`,
      );
      expect(await asAgent("worker-2")).toBe("created");
      await cluster.kubectl.run("delete", "resourceslice", "foreign");
    });

    it("however agent, driver and API server are killed, the slices are right in the end", async () => {
      const endsAt = Date.now() + CHAOS_S * 1_000;
      let kills = 0;
      // On a slow machine, too, each is killed twice.
      for (let count = 4; Date.now() < endsAt || kills < 6; count = 3 + (kills % 5)) {
        const victim = [agent.child, goDriver, cluster.apiServer][kills % 3]!;
        await victim.kill();
        say(count);
        await sleep(500 + ((kills * 373) % 1_500));
        victim.start();
        if (victim === cluster.apiServer) await cluster.ready();
        await sleep(((kills * 211) % 2_000) + 200);
        kills++;
      }
      say(6);
      await eventually(async () => {
        expect(await devices(GO_DRIVER)).toEqual(names(6));
        expect(await devices(SAMPLE)).toHaveLength(300);
      });
      const [slice, ...more] = await slices(GO_DRIVER);
      expect(more).toEqual([]);
      if (version === "v1") expect(slice?.spec.pool.resourceSliceCount).toBe(1);
      await agent.ready();
    });

    it("a driver that stays disconnected loses its slices after the delay, the other keeps its own", async () => {
      // An agent that was killed last may have withdrawn the sample's slices until it registered again.
      await eventually(async () => {
        expect(await agent.metric("nodekeeper_devices_drivers", '{state="streaming"}')).toBe(2);
        expect(await devices(SAMPLE)).toHaveLength(300);
      });
      await goDriver.stop();
      await eventually(async () => expect(await slices(GO_DRIVER)).toEqual([]));
      expect(await devices(SAMPLE)).toHaveLength(300);
    });
  },
);
