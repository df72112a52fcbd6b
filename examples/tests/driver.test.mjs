import { test } from "node:test";
import { startDevCluster, until } from "@nodekeeper/testing";
import { startPlugin } from "./start-plugin.mjs";

test("the driver's devices are published in a ResourceSlice, and withdrawn when it ends", async () => {
  await using cluster = await startDevCluster({ settings: { devices: { wipeDelay: "0s" } } });
  const plugin = startPlugin("--socket-dir", cluster.pluginDirectory, "--count", "2");
  const devices = () =>
    cluster.apiServer.store
      .list("resourceslices.resource.k8s.io")
      .filter(({ spec }) => spec.nodeName === cluster.nodeName)
      .flatMap(({ spec }) => spec.devices.map(({ name }) => name));
  try {
    const published = until("both devices are published", () => {
      const names = devices();
      return names.includes("accelerator-0") && names.includes("accelerator-1");
    });
    await Promise.race([published, plugin.failed]);
  } finally {
    await plugin.stop();
  }
  await until("no device is left", () => devices().length === 0);
});
