import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { type DevicePool, serveDeviceDriver } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, it } from "vitest";
import { FakeKubelet } from "../packages/agent/src/intree/kubelet/testing/fake-kubelet.ts";
import { machineTree, twoSockets, writeMachine } from "./fixtures/machines.ts";
import { startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";

let cluster: TestCluster;
const ends: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  cluster = await startCluster();
  ends.push(() => cluster.stop());
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const DRIVER = "gpu.example.com";

/** Where zones of devices of claims are, with the pods that hold them: "Socket1/Numa1/gpu.…/gpu-0: default/train/uid-train". */
function claimedZones(): string[] {
  const found: string[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: zones as the API server has them
  const visit = (zones: any[], path: string) => {
    for (const { type, name, children = [], allocations = [] } of zones) {
      // biome-ignore lint/suspicious/noExplicitAny: the same
      const consumers = allocations.map(({ consumer }: any) => consumer);
      if (type === "DRADevice") found.push(`${path}${name}: ${consumers.join()}`);
      visit(children, `${path}${type}${name}/`);
    }
  };
  visit(cluster.cnr()?.status?.topologyZone ?? [], "");
  return found.sort();
}

it("devices of claims are zones, on the NUMA node that their driver gives them, until the pod that holds them ends", async () => {
  const machine = await writeMachine(machineTree(twoSockets));
  ends.push(machine.remove);
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const cri = new SimulatedCri({ runtime, socket: join(cluster.directory, "cri.sock"), clock: systemClock });
  await cri.start();
  ends.push(() => cri.stop());
  const kubelet = await FakeKubelet.make();
  ends.push(() => kubelet[Symbol.asyncDispose]());
  const claimed = (driverName: string, deviceName: string) => ({ driverName, poolName: NODE, deviceName });
  const claimResources = [claimed(DRIVER, "gpu-0"), claimed("nic.example.com", "nic-0")];
  kubelet.pods = [
    {
      namespace: "default",
      name: "train",
      containers: [
        {
          name: "main",
          dynamicResources: [{ claimName: "train", claimNamespace: "default", claimResources }],
        },
      ],
    },
  ];
  await kubelet.start();
  const sandbox = runtime.runSandbox({ uid: "uid-train", name: "train", namespace: "default" });
  const agent = await startAgent(cluster, {
    hostRoot: machine.root,
    lifecycle: "true",
    runtimeEndpoint: cri.socket,
    reportingInTreePlugins: "kubelet-reporter-plugin",
    reportingKubeletPodResourcesSocket: kubelet.socket,
    reportingKubeletConfigFile: "",
    // So that only what happens to pods and drivers can be why the kubelet is asked again.
    reportingKubeletResyncInterval: "1h",
  });
  ends.push(() => agent.stop());
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices(): AsyncGenerator<DevicePool[]> {
      const attributes = { "resource.kubernetes.io/numaNode": { int: 1n } };
      yield [{ name: NODE, devices: [{ name: "gpu-0", attributes }] }];
    },
  });
  ends.push(() => driver.stop());
  await driver.ready;

  const expected = [
    `Socket1/Numa1/${DRIVER}/${NODE}/gpu-0: default/train/uid-train`,
    `nic.example.com/${NODE}/nic-0: default/train/uid-train`,
  ];
  const explain = { explain: () => cluster.cnr()?.status };
  await until("both devices have their zones", () => claimedZones().join() === expected.join(), explain);

  runtime.stopSandbox(sandbox);
  await until("no zone is left of them", () => claimedZones().length === 0, explain);
});
