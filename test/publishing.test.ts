import { retryPolicies } from "@nodekeeper/core/lib";
import {
  contentOf,
  customNodeResource,
  metadata,
  node,
  type ReportContent,
  spec,
  status,
} from "@nodekeeper/sdk";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { CNR_RESOURCE, NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { startGoodPlugin, widgets } from "./support/plugins.ts";

const clock = new SteppedClock();
let cluster: TestCluster;
let agent: RunningAgent;

beforeAll(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster, { reportingPluginGracePeriod: "0s" }, undefined, clock);
});
afterAll(async () => {
  await agent.stop();
  await cluster.stop();
});

const plugin = (name: string, ...contents: ReportContent[]) =>
  startGoodPlugin(agent.pluginDir, name, ...contents);

describe("content arrives", () => {
  it("in the CNR and the Node, changes there, and is removed when the plugin reports less", async () => {
    await using gpu = disposable(
      await plugin(
        "gpu",
        widgets("gpu", 1),
        customNodeResource(
          spec("nodeResourceProperties", [{ propertyName: "gpu_model", propertyValues: ["x"] }]),
        ),
        node(
          metadata("labels", { "example.dev/gpu": "yes" }),
          metadata("annotations", { "example.dev/about": "a gpu" }),
          status("capacity", { "example.dev/gpu": "4" }),
          status("allocatable", { "example.dev/gpu": "3" }),
        ),
      ),
    );
    await untilWidgets(cluster, "gpu", 1);
    await until("the Node's fields", () => cluster.node().status.allocatable["example.dev/gpu"] === "3");
    expect(cluster.cnr().spec.nodeResourceProperties).toEqual([
      { propertyName: "gpu_model", propertyValues: ["x"] },
    ]);
    expect(cluster.node().metadata).toMatchObject({
      labels: { "example.dev/gpu": "yes", "kubernetes.io/hostname": NODE },
      annotations: { "example.dev/about": "a gpu" },
    });
    expect(cluster.node().status.capacity).toMatchObject({ cpu: "4", "example.dev/gpu": "4" });

    gpu.it.say(widgets("gpu", 2), node(metadata("labels", { "example.dev/gpu": "yes" })));
    await untilWidgets(cluster, "gpu", 2);
    await until("what is said no more goes", () => {
      const { metadata, status } = cluster.node();
      return !metadata.annotations?.["example.dev/about"] && !("example.dev/gpu" in status.allocatable);
    });
    await until("the spec's field goes", () => !cluster.cnr().spec?.nodeResourceProperties);
    expect(cluster.node().metadata.labels["example.dev/gpu"]).toBe("yes");
    expect(cluster.node().status.capacity).toEqual({ cpu: "4", memory: "8Gi", pods: "110" });
  });

  it("is withdrawn when the plugin ends, and what others wrote stays", async () => {
    await using left = disposable(await plugin("left", widgets("left", 1)));
    const brief = await plugin("brief", widgets("brief", 1), node(metadata("labels", { brief: "yes" })));
    await untilWidgets(cluster, "left", 1);
    await untilWidgets(cluster, "brief", 1);
    await until("its label", () => cluster.node().metadata.labels.brief === "yes");
    await applyAs("somebody", CNR_PATH, {
      metadata: { labels: { foreign: "cnr" } },
      spec: { nodeResourceProperties: [{ propertyName: "foreign" }] },
    });
    await applyAs("somebody", `/api/v1/nodes/${NODE}`, { metadata: { labels: { foreign: "node" } } });
    await brief.stop();
    await until("its widgets go", () => cluster.widgets("brief") === undefined);
    await until("its label goes", () => cluster.node().metadata.labels.brief === undefined);
    expect(cluster.widgets("left")).toBe("1");
    expect(left.it.registration.state).toBe("registered");
    expect(cluster.node().metadata.labels).toMatchObject({ foreign: "node", "kubernetes.io/hostname": NODE });
    expect(cluster.cnr().metadata.labels).toEqual({ foreign: "cnr" });
    expect(cluster.cnr().spec.nodeResourceProperties).toEqual([{ propertyName: "foreign" }]);
  });

  it("of several plugins is merged into one object", async () => {
    await using a = disposable(await plugin("merge-a", widgets("merge-a", 1)));
    await using b = disposable(await plugin("merge-b", widgets("merge-b", 1)));
    await untilWidgets(cluster, "merge-a", 1);
    await untilWidgets(cluster, "merge-b", 1);
    a.it.say(widgets("merge-a", 2));
    await untilWidgets(cluster, "merge-a", 2);
    expect(cluster.widgets("merge-b")).toBe("1");
    b.it.say(widgets("merge-a", 3));
    await untilWidgets(cluster, "merge-a", 3);
    const objects = await agent.api("objects");
    const [conflict] = objects.find(({ object }: { object: string }) =>
      object.endsWith("CustomNodeResource"),
    ).conflicts;
    expect(conflict).toEqual({
      path: "status.resources.capacity.widgets.example/merge-a",
      winner: "merge-b",
      others: ["merge-a"],
    });
  });
});

describe("others meddle", () => {
  it("a deleted CNR is made again with everything", async () => {
    await using meddled = disposable(
      await plugin("deleted", widgets("deleted", 1), customNodeResource(metadata("labels", { kept: "yes" }))),
    );
    await untilWidgets(cluster, "deleted", 1);
    await until("its label", () => cluster.cnr().metadata.labels?.kept === "yes");
    const before = cluster.cnr().metadata.uid;
    cluster.server.store.delete(CNR_RESOURCE, NODE);
    await untilWidgets(cluster, "deleted", 1);
    expect(cluster.cnr().metadata.uid).not.toBe(before);
    expect(cluster.cnr().metadata.labels.kept).toBe("yes");
    meddled.it.say(widgets("deleted", 2));
    await untilWidgets(cluster, "deleted", 2);
  });

  it("a field that another client overwrites is repaired, also after the watches broke", async () => {
    await using meddled = disposable(await plugin("repaired", widgets("repaired", 1)));
    expect(meddled.it.socketPath).toContain("repaired");
    await untilWidgets(cluster, "repaired", 1);
    const overwrite = () =>
      applyAs("somebody", `${CNR_PATH}/status`, {
        status: { resources: { capacity: { "widgets.example/repaired": "99" } } },
      });
    await overwrite();
    expect(cluster.widgets("repaired")).toBe("99");
    await untilWidgets(cluster, "repaired", 1);
    cluster.server.cutWatches();
    let failures = 0;
    await until("watched again", () => {
      // A watch that has failed is tried again at once.
      const failed = agent.logLines.filter(({ msg }) => msg === "watch failed, retrying").length;
      if (failed > failures) clock.advance(retryPolicies.apiWatch.baseMs);
      failures = failed;
      return cluster.server.watches >= 2;
    });
    await overwrite();
    await untilWidgets(cluster, "repaired", 1);
  });
});

describe("what plugins may not report", () => {
  it("is refused and named, and the rest of the same plugin is published", async () => {
    await using bold = disposable(
      await plugin(
        "bold",
        widgets("bold", 1),
        node(
          metadata("labels", { "node-role.kubernetes.io/control-plane": "", "bold.dev/fine": "yes" }),
          status("capacity", { cpu: "1000", "bold.dev/chips": "2" }),
          spec("unschedulable", true),
        ),
        contentOf({ group: "", version: "v1", kind: "Secret" }, spec("data", {})),
      ),
    );
    expect(bold.it.registration).toBeDefined();
    await untilWidgets(cluster, "bold", 1);
    await until("the extended resource", () => cluster.node().status.capacity["bold.dev/chips"] === "2");
    const { metadata: meta, status: nodeStatus, spec: nodeSpec } = cluster.node();
    expect(meta.labels["bold.dev/fine"]).toBe("yes");
    expect(Object.keys(meta.labels)).not.toContain("node-role.kubernetes.io/control-plane");
    expect(nodeStatus.capacity.cpu).toBe("4");
    expect(nodeSpec.unschedulable).toBeUndefined();
    const problems = (await agent.plugin("bold"))?.problems.join("\n");
    expect(problems).toMatch(/"node-role\.kubernetes\.io\/control-plane" is reserved for Kubernetes/);
    expect(problems).toMatch(/"cpu" is not an extended resource/);
    expect(problems).toMatch(/unschedulable.*plugins are not allowed to report the spec of this kind/);
    expect(problems).toMatch(
      /kind "v1\/Secret" is not published: it is not listed in reporting\.additionalKinds/,
    );
  });
});

it("a Node that is missing is never made, and published to once it is there", async () => {
  const bare = await startCluster({ withNode: false });
  const alone = await startAgent(bare);
  const labelled = await startGoodPlugin(
    alone.pluginDir,
    "labelled",
    widgets("labelled", 1),
    node(metadata("labels", { mine: "yes" })),
  );
  try {
    await untilWidgets(bare, "labelled", 1);
    await until("the trouble is named", async () =>
      (await alone.api("objects")).some(({ lastError }: { lastError?: string }) =>
        lastError?.includes(`Node ${NODE} does not exist`),
      ),
    );
    expect(bare.node()).toBeUndefined();
    expect(bare.writes("nodes")).toEqual([]);
    bare.server.seedNode(NODE);
    await until("the label arrives", () => bare.node().metadata.labels.mine === "yes");
    bare.server.store.delete("nodes", NODE);
    labelled.say(widgets("labelled", 2), node(metadata("labels", { mine: "still" })));
    await untilWidgets(bare, "labelled", 2);
    expect(bare.node()).toBeUndefined();
    bare.server.seedNode(NODE);
    await until("the newest label arrives", () => bare.node().metadata.labels.mine === "still");
  } finally {
    await labelled.stop();
    await alone.stop();
    await bare.stop();
  }
});

it("a war over a field is shown with the other client's name in the row of the plugin, and as an Event", async () => {
  const front = await startCluster();
  const alone = await startAgent(front);
  const peaceful = await startGoodPlugin(alone.pluginDir, "peaceful", widgets("peaceful", 1));
  const warring = await startGoodPlugin(alone.pluginDir, "warring", widgets("warring", 1));
  const row = async (name: string) => (await alone.plugin(name))?.problems.join("; ") ?? "";
  const path = "status.resources.capacity.widgets.example/warring";
  try {
    await untilWidgets(front, "peaceful", 1);
    await untilWidgets(front, "warring", 1);
    for (let battle = 1; battle <= 3; battle++) {
      expect(await row("warring")).toBe("");
      const raid = { resources: { capacity: { "widgets.example/warring": `${100 + battle}` } } };
      await applyAs("raider", `${CNR_PATH}/status`, { status: raid }, front);
      await untilWidgets(front, "warring", 1);
    }
    await until(
      "its row",
      async () =>
        (await row("warring")).endsWith(`${path} of ${CNR} is also written by raider: put back 3 times`),
      { explain: () => row("warring") },
    );
    expect(await row("peaceful")).toBe("");
    await until("an Event", () =>
      front.server.store
        .list("events")
        .some(({ reason, message }) => reason === "FieldContested" && String(message).startsWith(path)),
    );
  } finally {
    await Promise.all([peaceful.stop(), warring.stop()]);
    await alone.stop();
    await front.stop();
  }
});

const CNR = "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource";
const CNR_PATH = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`;

async function applyAs(manager: string, path: string, body: object, { server } = cluster): Promise<void> {
  const isCnr = path.startsWith("/apis/");
  const answer = await fetch(`${server.url}${path}?fieldManager=${manager}&force=true`, {
    method: "PATCH",
    headers: { "content-type": "application/apply-patch+yaml" },
    body: JSON.stringify({
      apiVersion: isCnr ? "node.katalyst.kubewharf.io/v1alpha1" : "v1",
      kind: isCnr ? "CustomNodeResource" : "Node",
      ...body,
    }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
}

function disposable<T extends { stop(): Promise<void> }>(it: T) {
  return { it, [Symbol.asyncDispose]: () => it.stop() };
}
