import { test } from "node:test";
import { startDevCluster, until } from "@nodekeeper/testing";
import { startPlugin } from "./start-plugin.mjs";

const workload = (name, labels) => ({
  name,
  namespace: "default",
  owner: "ReplicaSet",
  replicas: 1,
  labels,
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "main", image: "images.example/app:1.0" }] },
});

test("a sample pod is evicted, and no other one", async () => {
  const workloads = [workload("sample", { "example.com/sample": "true" }), workload("other", {})];
  await using cluster = await startDevCluster({ workloads });
  const { store } = cluster.apiServer;
  const podOf = (app) => store.list("pods").find(({ metadata }) => metadata.labels.app === app);
  const first = await until("the sample pod runs", () => {
    const pod = podOf("sample");
    return pod?.status?.phase === "Running" && pod;
  });
  const other = await until("the other pod runs", () => {
    const pod = podOf("other");
    return pod?.status?.phase === "Running" && pod;
  });
  // A sample pod uses 64 MiB from the start.
  const plugin = startPlugin("--socket-dir", cluster.pluginDirectory, "--limit", "1");
  try {
    const evicted = until("the sample pod is evicted", () => {
      const pod = store.list("pods").find(({ metadata }) => metadata.uid === first.metadata.uid);
      return pod === undefined || pod.metadata.deletionTimestamp !== undefined;
    });
    await Promise.race([evicted, plugin.failed]);
    await until("the condition is a taint of the Node", () =>
      store
        .get("nodes", cluster.nodeName)
        .spec.taints?.some(({ key }) => key === "nodekeeper.dev/SamplePressure"),
    );
    const { metadata } = podOf("other");
    if (metadata.uid !== other.metadata.uid || metadata.deletionTimestamp)
      throw new Error("the other pod was evicted");
  } finally {
    await plugin.stop();
  }
});
