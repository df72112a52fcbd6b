import { ConditionType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { systemClock } from "@nodekeeper/core/lib";
import { customNodeResource, metadata, node, serveDeviceDriver, spec, status } from "@nodekeeper/sdk";
import type { RequestInfo } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { uninstallCommand } from "../packages/agent/src/cli/uninstall.ts";
import { startAgent } from "./support/agent.ts";
import { CNR_RESOURCE, NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { hardPressure, startEvictionPlugin } from "./support/eviction-plugin.ts";
import { startGoodPlugin, widgets } from "./support/plugins.ts";

const SLICES = "resourceslices.resource.k8s.io";
const GPUS = "example.com/gpus";
const foreign = { key: "theirs", effect: "NoSchedule", qosLevel: "shared_cores" };
const slice = (name: string, manager: object) => ({
  apiVersion: "resource.k8s.io/v1",
  kind: "ResourceSlice",
  metadata: { name, ...manager },
  spec: {
    driver: "other.example.com",
    nodeName: NODE,
    pool: { name: "p", generation: 1, resourceSliceCount: 1 },
  },
});

let cluster: TestCluster;

beforeEach(async () => {
  cluster = await startCluster();
});
afterEach(() => cluster.stop());

/** The texts of the command's output, and its exit status. */
async function uninstall(...args: string[]): Promise<{ lines: string[]; status: number }> {
  let out = "";
  const write = (text: string) => {
    out += text;
  };
  const output = { write, isTerminal: false, columns: 120 };
  const argv = ["node", "nodekeeper", "uninstall", "--kubeconfig", cluster.kubeconfig, ...args];
  const code = await runCli(argv, output);
  return { lines: out.trimEnd().split("\n"), status: code };
}

const names = (plural: string) => cluster.server.store.list(plural).map((each) => each.metadata.name);

/** Runs an agent that publishes something of each kind on objects that others use too, and stops it. */
async function leftBehind(): Promise<void> {
  const { store } = cluster.server;
  store.put({
    apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
    kind: "CustomNodeResource",
    metadata: { name: NODE, labels: { theirs: "1" } },
    spec: { taints: [foreign] },
    status: { conditions: [{ type: "Theirs", status: "True" }] },
  });
  const live = cluster.node();
  const taints = [{ key: "theirs", effect: "NoSchedule" }];
  store.put({
    ...live,
    spec: { ...live.spec, taints },
    metadata: { ...live.metadata, labels: { ...live.metadata.labels, theirs: "1" } },
  });
  store.put(slice("other", {}));
  const agent = await startAgent(cluster);
  const plugin = await startGoodPlugin(
    agent.pluginDir,
    "gpus",
    widgets("gpus", 1),
    customNodeResource(spec("taints", [{ ...foreign, key: "ours" }])),
    node(
      metadata("labels", { gpus: "1" }),
      status("capacity", { [GPUS]: "8" }),
      status("allocatable", { [GPUS]: "8" }),
    ),
  );
  const pressure = await startEvictionPlugin(agent.pluginDir, "pressure");
  const condition = {
    conditionType: ConditionType.NODE_CONDITION,
    conditionName: "Squeeze",
    effects: ["NoSchedule"],
    metCondition: true,
  };
  pressure.threshold = { ...hardPressure, condition };
  const driver = serveDeviceDriver({
    name: "accelerators.example.com",
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }] }];
    },
  });
  await until("all of it is published", () => {
    const { metadata: meta, spec: its, status: state } = cluster.node();
    return (
      meta.labels.gpus === "1" &&
      state.allocatable[GPUS] === "8" &&
      its.taints.length === 2 &&
      cluster.cnr().spec.taints.length === 2 &&
      cluster.widgets("gpus") === "1" &&
      names(SLICES).length === 2
    );
  });
  await agent.stop();
  await Promise.all([plugin.stop(), pressure.stop(), driver.stop()]);
}

it("removes what the agent left and nothing of others, says what, and does nothing the second time", async () => {
  await leftBehind();
  const before = JSON.stringify([cluster.node(), cluster.cnr()]);
  const planned = await uninstall("--node", NODE, "--dry-run");
  expect(JSON.stringify([cluster.node(), cluster.cnr()])).toBe(before);
  expect(names(SLICES)).toHaveLength(2);
  const [ours] = names(SLICES).filter((name) => name !== "other");
  const items = [
    "Node spec.taints[nodekeeper.dev/Squeeze:NoSchedule]",
    "CustomNodeResource spec.taints[ours/NoSchedule/shared_cores]",
    "CustomNodeResource status.resources.capacity",
    "Node status.allocatable.example.com/gpus",
    "Node status.capacity.example.com/gpus",
    "Node metadata.labels.gpus",
    `ResourceSlice ${ours}`,
  ];
  for (const item of items) expect(planned.lines).toContain(`${NODE}: would be removed: ${item}`);

  const done = await uninstall("--node", NODE);
  expect(done.status).toBe(0);
  expect(done.lines).toEqual(planned.lines.map((line) => line.replaceAll("would be removed", "removed")));
  const live = cluster.node();
  expect(live.spec.taints).toEqual([{ key: "theirs", effect: "NoSchedule" }]);
  expect([live.metadata.labels.gpus, live.metadata.labels.theirs]).toEqual([undefined, "1"]);
  expect(live.metadata.annotations?.["nodekeeper.dev/own-taints"]).toBeUndefined();
  expect([live.status.capacity[GPUS], live.status.allocatable[GPUS], live.status.capacity.cpu]).toEqual([
    undefined,
    undefined,
    "4",
  ]);
  const cnr = cluster.cnr();
  expect(cnr.spec.taints).toEqual([foreign]);
  expect(cnr.metadata.labels).toEqual({ theirs: "1" });
  expect(cnr.metadata.annotations?.["nodekeeper.dev/own-taints"]).toBeUndefined();
  expect(cnr.status).toEqual({ conditions: [{ type: "Theirs", status: "True" }] });
  expect(names(SLICES)).toEqual(["other"]);

  const writes = cluster.requests.filter(({ method }) => method !== "GET").length;
  const again = await uninstall("--node", NODE);
  expect(again).toEqual({ status: 0, lines: ["1 node, 0 items removed"] });
  expect(names(CNR_RESOURCE)).toEqual([NODE]);
  // Only what keeps the others' taints is applied again, unchanged.
  expect(cluster.requests.filter(({ method }) => method !== "GET").length - writes).toBeLessThanOrEqual(1);
});

/** Runs an agent that makes the CustomNodeResource, with fields of every part, and stops it. */
async function ownObject(): Promise<void> {
  const agent = await startAgent(cluster);
  const plugin = await startGoodPlugin(
    agent.pluginDir,
    "gpus",
    widgets("gpus", 1),
    customNodeResource(metadata("labels", { gpus: "1" }), spec("taints", [{ ...foreign, key: "ours" }])),
  );
  await until(
    "its report",
    () => cluster.widgets("gpus") === "1" && cluster.cnr().spec?.taints?.length === 1,
  );
  await agent.stop();
  await plugin.stop();
  // The schema's default, which no client has.
  const cnr = cluster.cnr();
  cluster.server.store.put({ ...cnr, status: { ...cnr.status, topologyPolicy: "none" } });
}

const wholeObject = [
  "CustomNodeResource spec.taints[ours/NoSchedule/shared_cores]",
  "CustomNodeResource status.resources.capacity",
  "CustomNodeResource metadata.labels.gpus",
  "CustomNodeResource (the whole object)",
].map((item) => `${NODE}: removed: ${item}`);

it("cleans all nodes that a selector matches, and deletes a CustomNodeResource in which nobody else has anything", async () => {
  await ownObject();
  cluster.server.seedNode("worker-2");
  const none = await uninstall("--all-nodes", "-l", "pool=a");
  expect(none).toEqual({ status: 0, lines: ["0 nodes, 0 items removed"] });
  const done = await uninstall("--all-nodes");
  expect(done.status).toBe(0);
  expect(done.lines.at(-1)).toMatch(/^2 nodes, \d+ items removed$/);
  expect(done.lines).toEqual(expect.arrayContaining(wholeObject));
  expect(names(CNR_RESOURCE)).toEqual([]);
  expect(names("nodes").sort()).toEqual([NODE, "worker-2"]);
});

describe("slices of pools beyond the nodes", () => {
  beforeEach(() => {
    const beyond = (name: string, manager: object) => {
      const whole = slice(name, manager);
      const { nodeName: _, ...spec } = whole.spec;
      return { ...whole, spec: { ...spec, allNodes: true } };
    };
    cluster.server.store.put(beyond("ours", { labels: { "app.kubernetes.io/managed-by": "nodekeeper" } }));
    cluster.server.store.put(beyond("theirs", {}));
  });

  it("are deleted with all nodes, none of which owns them", async () => {
    expect((await uninstall("--node", NODE)).status).toBe(0);
    expect((await uninstall("--all-nodes", "--dry-run")).lines).toContain(
      "cluster: would be removed: ResourceSlice ours",
    );
    expect(names(SLICES).sort()).toEqual(["ours", "theirs"]);
    const done = await uninstall("--all-nodes");
    expect(done).toEqual({
      status: 0,
      lines: ["cluster: removed: ResourceSlice ours", "1 node, 1 item removed"],
    });
    expect(names(SLICES)).toEqual(["theirs"]);
  });

  it("are deleted with selected nodes, as the chart's Job selects them, unless an agent runs on another node", async () => {
    const select = ["--all-nodes", "-l", `kubernetes.io/hostname=${NODE}`];
    addAgentElsewhere();
    const left =
      "nodekeeper: ResourceSlices of pools beyond the node are left to the other agents: pod default/nodekeeper-x runs on node worker-2\n";
    for (const more of [[], ["--dry-run"]]) {
      const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
      expect((await uninstall(...select, ...more)).status).toBe(0);
      expect(written.mock.calls.map(([text]) => text)).toEqual([left]);
      written.mockRestore();
    }
    expect(names(SLICES).sort()).toEqual(["ours", "theirs"]);
    cluster.server.store.delete("pods", "nodekeeper-x", "default");
    expect(await uninstall(...select)).toEqual({
      status: 0,
      lines: ["cluster: removed: ResourceSlice ours", "1 node, 1 item removed"],
    });
    expect(names(SLICES)).toEqual(["theirs"]);
  });
});

const isObject = ({ resource }: RequestInfo) => resource?.plural === "customnoderesources";
const refusal = (status: number, reason: string) => ({
  status,
  body: { kind: "Status", code: status, reason, message: "refused" },
});

it("deletes the object, and says what it had, although somebody changes it meanwhile", async () => {
  await ownObject();
  let left = 2;
  cluster.fault = (request) =>
    request.method === "DELETE" && isObject(request) && left-- > 0 ? refusal(409, "Conflict") : undefined;
  const done = await uninstall("--node", NODE);
  expect(done.lines).toEqual([...wholeObject, "1 node, 4 items removed"]);
  expect(names(CNR_RESOURCE)).toEqual([]);
});

it("leaves a field that another client adds while it deletes the object", async () => {
  await ownObject();
  cluster.fault = (request) => {
    if (request.method !== "DELETE" || !isObject(request)) return undefined;
    const { store } = cluster.server;
    const { metadata: meta, ...others } = cluster.cnr();
    const theirs = {
      manager: "theirs",
      operation: "Update",
      fieldsV1: { "f:metadata": { "f:labels": { "f:theirs": {} } } },
    };
    store.put({
      ...others,
      metadata: {
        ...meta,
        labels: { ...meta.labels, theirs: "1" },
        managedFields: [...meta.managedFields, theirs],
      },
    });
    return undefined;
  };
  const done = await uninstall("--node", NODE);
  expect([...done.lines].sort()).toEqual(["1 node, 3 items removed", ...wholeObject.slice(0, 3)].sort());
  expect(cluster.cnr().metadata.labels).toEqual({ theirs: "1" });
  expect(cluster.cnr().status?.resources).toBeUndefined();
});

it("deletes the object once it may", async () => {
  await ownObject();
  cluster.fault = (request) =>
    request.method === "DELETE" && isObject(request) ? refusal(403, "Forbidden") : undefined;
  const refused = await uninstall("--node", NODE);
  expect(refused).toMatchObject({
    status: 1,
    lines: [expect.stringContaining("not removed"), expect.anything()],
  });
  cluster.fault = () => undefined;
  const done = await uninstall("--node", NODE);
  expect(done).toEqual({ status: 0, lines: [...wholeObject, "1 node, 4 items removed"] });
  expect(names(CNR_RESOURCE)).toEqual([]);
});

it("says what it has removed before an error, and leaves an object that is empty and may be somebody's", async () => {
  await leftBehind();
  cluster.fault = (request) =>
    request.method === "PATCH" && isObject(request) && request.path.endsWith("/status")
      ? refusal(403, "Forbidden")
      : undefined;
  const failed = await uninstall("--node", NODE);
  expect(failed.status).toBe(1);
  expect(failed.lines).toContain(
    `${NODE}: removed: CustomNodeResource spec.taints[ours/NoSchedule/shared_cores]`,
  );
  expect(failed.lines).not.toContain(`${NODE}: removed: CustomNodeResource status.resources.capacity`);
  cluster.fault = () => undefined;
  const { apiVersion, kind } = cluster.cnr();
  expect((await uninstall("--node", NODE)).lines).toEqual([
    `${NODE}: removed: CustomNodeResource status.resources.capacity`,
    "1 node, 1 item removed",
  ]);
  cluster.server.store.put({ apiVersion, kind, metadata: { name: NODE } });
  expect((await uninstall("--node", NODE)).lines).toEqual(["1 node, 0 items removed"]);
  expect(names(CNR_RESOURCE)).toEqual([NODE]);
});

it("cleans several nodes at once, a throttled one again, while it waits for the agent of another", async () => {
  await ownObject();
  for (const name of ["worker-0", "worker-2"]) cluster.server.seedNode(name);
  const labels = { "app.kubernetes.io/part-of": "nodekeeper", "app.kubernetes.io/component": "node-agent" };
  cluster.addPod("nodekeeper-x", { metadata: { labels }, spec: { nodeName: "worker-2" } });
  const asked = (name: string) => cluster.requests.some(({ path }) => path.endsWith(`/nodes/${name}`));
  // One after another, worker-1 would never be asked for.
  cluster.fault = ({ path }) =>
    path.endsWith("/nodes/worker-0") && !asked(NODE) ? refusal(429, "TooManyRequests") : undefined;
  const isClean = () => names(CNR_RESOURCE).length === 0;
  const cleaning = uninstall("--all-nodes");
  await until("the node without an agent is clean", isClean);
  expect(asked("worker-2")).toBe(false);
  cluster.server.store.delete("pods", "nodekeeper-x", "default");
  expect(await cleaning).toEqual({ status: 0, lines: [...wholeObject, "3 nodes, 4 items removed"] });
  expect(asked("worker-2")).toBe(true);
  expect(JSON.parse((await uninstall("--all-nodes", "-o", "json")).lines.join(""))).toEqual(
    ["worker-0", NODE, "worker-2"].map((node) => ({ node, removed: [] })),
  );
});

it("leaves a node on which an agent runs, whether in a pod or by its state directory, and needs a node", async () => {
  const agent = await startAgent(cluster);
  process.env.NODEKEEPER_STATE_DIR = agent.stateDir;
  process.env.NODE_NAME = NODE;
  try {
    for (const which of [["--node", NODE], ["--all-nodes"]]) {
      const { status, lines } = await uninstall(...which);
      expect([status, lines.join("\n")]).toEqual([1, expect.stringContaining("it uses the state directory")]);
    }
    // A dry run changes nothing under it.
    expect((await uninstall("--node", NODE, "--dry-run")).status).toBe(0);
  } finally {
    delete process.env.NODEKEEPER_STATE_DIR;
    delete process.env.NODE_NAME;
    await agent.stop();
  }
  const labels = { "app.kubernetes.io/part-of": "nodekeeper", "app.kubernetes.io/component": "node-agent" };
  cluster.addPod("nodekeeper-x", { metadata: { labels } });
  const planned = await uninstall("--all-nodes", "--dry-run");
  expect(planned.lines.at(-1)).toMatch(/would be removed$/);
  // It waits for the agent's end.
  const waiting = uninstall("--all-nodes");
  const isListed = () => cluster.requests.filter(({ path }) => path.endsWith("/pods")).length >= 3;
  await until("it asked twice for pods", isListed);
  cluster.server.store.delete("pods", "nodekeeper-x", "default");
  expect((await waiting).status).toBe(0);

  expect((await uninstall()).status).toBe(2);
  expect((await uninstall("--node", NODE, "--all-nodes")).status).toBe(2);
});

/** A command beside which the clock can be set forward. Its output is one text. */
function lateRun() {
  const stop = new AbortController();
  const run = {
    lateMs: 0,
    text: "",
    stop,
    start: (output: "text" | "json") =>
      uninstallCommand(
        { allNodes: true, kubeconfig: cluster.kubeconfig, output },
        {
          clock: { ...systemClock, monotonic: () => systemClock.monotonic() + run.lateMs },
          signal: stop.signal,
          output: {
            write: (text: string) => {
              run.text += text;
            },
            isTerminal: false,
            columns: 120,
          },
        },
      ),
  };
  return run;
}

/** An agent's pod on a node of its own. */
function addAgentElsewhere(): void {
  const labels = { "app.kubernetes.io/part-of": "nodekeeper", "app.kubernetes.io/component": "node-agent" };
  cluster.server.seedNode("worker-2");
  cluster.addPod("nodekeeper-x", { metadata: { labels }, spec: { nodeName: "worker-2" } });
}

const isOf = (name: string) => (request: RequestInfo) => request.path.endsWith(`/nodes/${name}`);
const isPodList = ({ path }: RequestInfo) => path.endsWith("/pods");

it("cleans a node whose agent ended while others were cleaned for longer than it waits", async () => {
  addAgentElsewhere();
  const run = lateRun();
  cluster.fault = (request) => {
    if (!isOf(NODE)(request)) return undefined;
    run.lateMs = 120_000;
    cluster.server.store.delete("pods", "nodekeeper-x", "default");
    return undefined;
  };
  expect([await run.start("text"), run.text]).toEqual([true, "2 nodes, 0 items removed\n"]);
});

it("leaves a node whose agent has not ended by then", async () => {
  addAgentElsewhere();
  const run = lateRun();
  cluster.fault = (request) => {
    if (isOf(NODE)(request)) run.lateMs = 120_000;
    return undefined;
  };
  expect([await run.start("text"), run.text]).toEqual([false, expect.stringContaining("NK1717")]);
});

it("goes on after a list of pods that fails, and prints what was done where all of them do", async () => {
  addAgentElsewhere();
  const unavailable = refusal(500, "InternalError");
  let failures = 0;
  cluster.fault = (request) => (isPodList(request) && failures++ === 0 ? unavailable : undefined);
  const run = lateRun();
  const waiting = run.start("json");
  const isAsked = () => cluster.requests.some(({ path }) => path.endsWith(`/nodes/${NODE}`));
  await until("the node without an agent is asked for", isAsked);
  expect(failures).toBeGreaterThan(1);
  run.lateMs = 120_000;
  cluster.fault = (request) => (isPodList(request) ? unavailable : undefined);
  await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
  expect(JSON.parse(run.text)).toEqual([{ node: NODE, removed: [] }]);
});

it("prints what it removed before it is interrupted", async () => {
  await ownObject();
  const run = lateRun();
  cluster.fault = ({ resource }) => {
    if (resource?.plural === SLICES.split(".")[0]) run.stop.abort(new Error("interrupted"));
    return undefined;
  };
  await expect(run.start("json")).rejects.toThrow("interrupted");
  const removed = wholeObject.map((line) => line.replace(`${NODE}: removed: `, ""));
  expect(JSON.parse(run.text)).toEqual([{ node: NODE, removed, error: expect.anything() }]);
});
