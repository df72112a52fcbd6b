import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { machineTree, twoSockets, writeMachine } from "../fixtures/machines.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import { Containerd } from "./support/containerd.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { CriClient } from "./support/cri-client.ts";
import { containerdParts, controlPlaneParts, missingParts, pathOf } from "./support/parts.ts";

const NODE = "worker-1";
const cnrPath = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`;
const GPU = "example.com/gpu";
const missing =
  process.getuid?.() !== 0 || missingParts(...controlPlaneParts, "goPodResources", ...containerdParts);

/** What the server in Go reads from its file: protobuf's JSON of the kubelet's answers. */
interface Script {
  allocatable: object;
  list: { podResources: object[] };
  hang: boolean;
}

const on = (...nodes: number[]) => ({ nodes: nodes.map((ID) => ({ ID })) });

/** A container that holds CPUs, a GPU and memory on the second NUMA node, and a network card by a claim. */
const holding = (name: string, gpu: string, cpuIds: number[]) => ({
  namespace: "default",
  name,
  containers: [
    {
      name: "main",
      cpuIds,
      devices: [{ resourceName: GPU, deviceIds: [gpu], topology: on(1) }],
      memory: [{ memoryType: "memory", size: String(2 ** 30), topology: on(1) }],
      dynamicResources: [
        {
          claimName: `${name}-nic`,
          claimNamespace: "default",
          claimResources: [
            {
              cdiDevices: [{ name: "example.com/nic=nic-0" }],
              driverName: "nic.example.com",
              poolName: NODE,
              deviceName: "nic-0",
            },
          ],
        },
      ],
    },
  ],
});

describe.skipIf(missing)("the kubelet's PodResources on a real kube-apiserver", () => {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let agent: AgentProcess;
  let kubelet: Child;
  let removeMachine: () => Promise<void>;
  let script: Script;
  const files = { script: "", kubelet: "" };

  const say = (changes: Partial<Script>) => {
    script = { ...script, ...changes };
    replace(files.script, JSON.stringify(script));
  };
  const status = async () => (await cluster.admin.get(cnrPath)).status as ApiObject;
  /** A zone by the names on the way to it. */
  const zone = async (...path: string[]): Promise<ApiObject | undefined> => {
    let zones: ApiObject[] = (await status()).topologyZone;
    let found: ApiObject | undefined;
    for (const step of path) {
      found = zones.find(({ type, name }) => `${type}/${name}` === step);
      zones = found?.children ?? [];
    }
    return found;
  };
  const consumers = async () =>
    ((await zone("Socket/1", "Numa/1"))?.allocations ?? []).map(({ consumer }: ApiObject) => consumer);

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    containerd = await Containerd.start(join(cluster.directory, "containerd"), "containerd");
    cri = new CriClient(containerd);
    const machine = await writeMachine(machineTree(twoSockets));
    removeMachine = machine.remove;
    files.script = join(cluster.directory, "podresources.json");
    files.kubelet = join(cluster.directory, "kubelet.yaml");
    const socket = join(cluster.directory, "kubelet.sock");
    writeFileSync(files.kubelet, "kind: KubeletConfiguration\ntopologyManagerPolicy: restricted\n");
    script = {
      allocatable: {
        cpuIds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
        memory: [{ memoryType: "memory", size: String(100 * 2 ** 30), topology: on(0) }],
        devices: [
          { resourceName: GPU, deviceIds: ["gpu-0"], topology: on(0) },
          { resourceName: GPU, deviceIds: ["gpu-1"], topology: on(1) },
          { resourceName: "example.com/nic", deviceIds: ["nic-0", "nic-1"], topology: on(1) },
        ],
      },
      list: { podResources: [] },
      hang: false,
    };
    say({});
    kubelet = new Child({
      name: "PodResources server",
      command: pathOf("goPodResources"),
      args: [`--socket=${socket}`, `--file=${files.script}`],
      logFile: join(cluster.directory, "podresources.log"),
    });
    kubelet.start();
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        "runtime-endpoint": `unix://${containerd.socket}`,
        "host-root": machine.root,
        "reporting-in-tree-plugins": "*",
        "reporting-kubelet-pod-resources-socket": socket,
        "reporting-kubelet-config-file": files.kubelet,
        "reporting-kubelet-device-zones": `${GPU}=GPU`,
        // So that only what happens to pods can be why something is reported soon.
        "reporting-kubelet-resync-interval": "10m",
      },
    });
    await agent.ready();
  });

  afterAll(async () => {
    cri?.close();
    await agent?.child.stop();
    await kubelet?.stop();
    await containerd?.stop();
    await cluster?.stop();
    await removeMachine?.();
  });

  it("become zones of the CustomNodeResource, and the kubelet's policy with them", async () => {
    await eventually(async () => expect((await status()).topologyZone).toHaveLength(2));
    const { topologyPolicy, topologyZone } = await status();
    expect(topologyPolicy).toBe("RestrictedContainerLevel");
    expect(topologyZone.map(({ type, name }: ApiObject) => `${type}/${name}`)).toEqual([
      "Socket/0",
      "Socket/1",
    ]);
    expect(await zone("Socket/0", "Numa/0")).toEqual({
      type: "Numa",
      name: "0",
      attributes: [
        { name: "thread_topology_info", value: "0:8,1:9,2:10,3:11,8:0,9:1,10:2,11:3" },
        { name: "reserved_cpu_list", value: "0" },
      ],
      resources: {
        capacity: { cpu: "8", memory: "125Gi", [GPU]: "1" },
        allocatable: { cpu: "7", memory: "100Gi", [GPU]: "1" },
      },
      children: [
        {
          type: "GPU",
          name: "gpu-0",
          resources: { capacity: { [GPU]: "1" }, allocatable: { [GPU]: "1" } },
        },
      ],
    });
    expect((await zone("Socket/1", "Numa/1"))?.resources.allocatable).toEqual({
      cpu: "6",
      [GPU]: "1",
      "example.com/nic": "2",
    });
  });

  let sandbox: string;

  it("show who holds what soon after a pod starts, by the UID it has in the runtime", async () => {
    say({ list: { podResources: [holding("train", "gpu-1", [4, 5])] } });
    sandbox = await cri.runPodSandbox({ uid: "uid-train", name: "train", namespace: "default" });
    const held = { cpu: "2", memory: "1Gi", [GPU]: "1" };
    await eventually(async () =>
      expect((await zone("Socket/1", "Numa/1"))?.allocations).toEqual([
        { consumer: "default/train/uid-train", requests: held },
      ]),
    );
    expect((await zone("Socket/1", "Numa/1", "GPU/gpu-1"))?.allocations).toEqual([
      { consumer: "default/train/uid-train", requests: { [GPU]: "1" } },
    ]);
    expect((await zone("Socket/0", "Numa/0"))?.allocations).toBeUndefined();
    // Its driver says nothing to the agent of where it is.
    expect((await zone(`DRADevice/nic.example.com/${NODE}/nic-0`))?.allocations).toEqual([
      { consumer: "default/train/uid-train", requests: { "nic.example.com": "1" } },
    ]);
  });

  it("stay as they were while the kubelet is killed and hangs, over a restart of the agent, and then follow it", async () => {
    await kubelet.kill();
    // Something happens, so that the kubelet is asked.
    const other = await cri.runPodSandbox({ uid: "uid-other", name: "other", namespace: "default" });
    const logged = (text: string) => agent.logged().filter(({ msg }) => String(msg).includes(text)).length;
    await eventually(() => expect(logged("failed to read the kubelet's PodResources")).toBe(1));
    await eventually(async () => expect((await agent.readiness()).text).toContain("kubelet-reporter-plugin"));
    expect(await consumers()).toEqual(["default/train/uid-train"]);

    // Also over a restart of the agent, which then knows nothing but what it kept.
    await agent.child.kill();
    agent.child.start();
    await eventually(async () => {
      const labels = '{result="unavailable"}';
      expect(await agent.metric("nodekeeper_intree_kubelet_readings_total", labels)).toBeGreaterThan(1);
    });
    expect(await consumers()).toEqual(["default/train/uid-train"]);

    say({ hang: true });
    kubelet.start();
    await eventually(() => expect(kubelet.log).toContain("cancelled"));
    expect(await consumers()).toEqual(["default/train/uid-train"]);
    // Once by each run of the agent.
    expect(logged("failed to read the kubelet's PodResources")).toBe(2);

    writeFileSync(files.kubelet, "kind: KubeletConfiguration\ntopologyManagerPolicy: none\n");
    say({
      hang: false,
      list: { podResources: [holding("train", "gpu-1", [4, 5]), holding("other", "gpu-2", [6])] },
    });
    await eventually(async () =>
      expect(await consumers()).toEqual(["default/other/uid-other", "default/train/uid-train"]),
    );
    // gpu-2 is held but not healthy.
    expect((await zone("Socket/1", "Numa/1"))?.resources).toMatchObject({
      capacity: { [GPU]: "2" },
      allocatable: { [GPU]: "1" },
    });
    expect((await status()).topologyPolicy).toBe("None");
    await agent.ready();
    await cri.stopPodSandbox(other);
  });

  it("no longer show a pod that has ended, also when the kubelet still lists it", async () => {
    await cri.stopPodSandbox(sandbox);
    // containerd 1.7 sends the first event after a consumer's end to no consumer: then the next relist reports it.
    await eventually(async () => expect(await consumers()).toEqual([]));
    expect(await agent.metric("nodekeeper_intree_kubelet_unknown_pods")).toBe(2);
  });
});

// Whole at once: the server may read it at any time.
function replace(path: string, content: string): void {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}
