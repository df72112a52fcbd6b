// The calls that preparing a claim takes, without what the agent does with them, in a process of their own:
//   node claims-floor-process.ts empty|claim|driver|calls REGISTRY KUBECONFIG DRIVER_SOCKET
// `empty` answers the kubelet at once. `claim` first reads the claim, `driver` calls the driver, and `calls` does both, with
// the agent's own clients.
import { DevicePreparationDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { createKubeClient, createKubeMetrics, loadClusterAccess } from "@nodekeeper/core/kube";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { allocationOf } from "../packages/agent/src/claims/allocation.ts";
import { ClaimReader } from "../packages/agent/src/claims/claim-reader.ts";
import { DriverClient } from "../packages/agent/src/claims/driver-client.ts";
import { KubeletPlugin } from "../packages/agent/src/claims/kubelet-plugin.ts";
import { keepProcessSmall } from "../packages/agent/src/cli/memory.ts";
import { CLAIMS_DRIVER } from "./claims-driver.ts";

keepProcessSmall();
const [mode, registryDirectory = "", kubeconfig = "", endpoint = ""] = process.argv.slice(2);
const common = { clock: systemClock, log: silentLogger };
const access = await loadClusterAccess({ kubeconfig, environment: {} });
const metrics = createKubeMetrics(new Registry());
// The agent's limit in the benchmark.
const client = createKubeClient({ ...common, access, metrics, version: "bench", qps: 20 });
const reader = new ClaimReader(client);
const driver = new DriverClient({
  driver: CLAIMS_DRIVER,
  endpoint,
  service: DevicePreparationDefinition.fullName,
  deadlineMs: () => 10_000,
  clock: systemClock,
});
const identity = { request: "req", pool: "bench", device: "accelerator-0", shareId: "" };
const prepared = {
  ...identity,
  consumedCapacity: {},
  adminAccess: false,
  configuration: [],
  cdiDeviceIds: [],
};
const unread = {
  devices: [{ ...identity, consumedCapacity: {}, adminAccess: false, configuration: [] }],
  pods: [],
  details: undefined,
};
new KubeletPlugin({
  ...common,
  driver: CLAIMS_DRIVER,
  registryDirectory,
  instance: "floor",
  hasHealth: false,
  calls: {
    async prepare(_driver, claim, signal) {
      const allocation =
        mode === "claim" || mode === "calls"
          ? allocationOf(await reader.read(claim, signal), CLAIMS_DRIVER)
          : unread;
      if (mode === "driver" || mode === "calls") await driver.prepare(claim, allocation, signal);
      return [prepared];
    },
    unprepare: async () => {},
    async *health() {},
  },
});
