import { test } from "node:test";
import { startDevCluster, until } from "@nodekeeper/testing";
import { startPlugin } from "./start-plugin.mjs";

const widgets = "example.nodekeeper.dev/widgets";

test("what the plugin reports is published, and what it changes", async () => {
  await using cluster = await startDevCluster();
  const { store } = cluster.apiServer;
  const plugin = startPlugin("--socket-dir", cluster.pluginDirectory);
  try {
    const resources = () =>
      store.get("customnoderesources.node.katalyst.kubewharf.io", cluster.nodeName)?.status?.resources;
    const published = until("16 widgets are published, all usable or fewer", () => {
      const { capacity, allocatable } = resources() ?? {};
      return capacity?.[widgets] === "16" && allocatable?.[widgets];
    });
    const first = await Promise.race([published, plugin.failed]);
    await until("another number of usable ones", () => resources()?.allocatable?.[widgets] !== first);
    await until("the label of the Node", () => {
      const { labels } = store.get("nodes", cluster.nodeName).metadata;
      return labels?.["example.nodekeeper.dev/has-widgets"] === "true";
    });
  } finally {
    await plugin.stop();
  }
});
