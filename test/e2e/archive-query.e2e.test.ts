import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { buildKubectlPlugin } from "../../scripts/kubectl-plugin.ts";
import { blocksOf, type DocShell, prepareShell, runBlock } from "../support/doc-blocks.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "../support/eviction-plugin.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Containerd } from "./support/containerd.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { CriClient } from "./support/cri-client.ts";
import { openFleetPage } from "./support/fleet-page.ts";
import { PluginUser } from "./support/kubectl-plugin.ts";
import { containerdParts, controlPlaneParts, missingParts } from "./support/parts.ts";
import { TestKubelet } from "./support/test-kubelet.ts";
import { VictoriaLogsServer } from "./support/victoria-logs.ts";

const NODE = "worker-1";
const deploy = join(import.meta.dirname, "../../deploy");
const pods = "/api/v1/namespaces/default/pods";
const missing =
  process.getuid?.() !== 0 || missingParts(...controlPlaneParts, ...containerdParts, "victoriaLogs");
const sleeping = ["/bin/sh", "-c", "trap 'exit 143' TERM; while true; do sleep 0.1; done"];

// The records of a node, read from a laptop after the node was deleted with its disk.
describe.skipIf(missing)("the archive of a node that is gone, in a real VictoriaLogs", () => {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let kubelet: TestKubelet;
  let agent: AgentProcess;
  let plugin: TestEvictionPlugin;
  let store: VictoriaLogsServer;
  let user: PluginUser;
  /** What the agent said before the node was deleted: of each pod, and of the node. */
  const said = new Map<string, string>();
  let saidOfNode = "";
  const uids = new Map<string, string>();

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    store = await VictoriaLogsServer.start(join(cluster.directory, "store"));
    containerd = await Containerd.start(join(cluster.directory, "containerd"), "containerd");
    cri = new CriClient(containerd);
    kubelet = new TestKubelet(cluster, cri, NODE, () => sleeping);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        "runtime-endpoint": `unix://${containerd.socket}`,
        "eviction-sync-period": "1s",
        "eviction-condition-transition-period": "2s",
        "archive-endpoint": store.endpoint,
        "archive-interval": "100ms",
        "archive-traces": "false",
        "archive-attributes": "k8s.cluster.name=prod",
      },
    });
    await agent.ready();
    plugin = await startEvictionPlugin(agent.pluginDirectory, "pressure");
    await eventually(async () => expect(plugin.registered).toBe(true));
    await buildKubectlPlugin(cluster.directory);
    user = await PluginUser.create(cluster, {
      ...{ name: "ann", group: "system:masters" },
      plugin: join(cluster.directory, "kubectl-nodekeeper.cjs"),
    });
    await addPods();
    await endNode();
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await kubelet?.stop();
    cri?.close();
    await containerd?.stop();
    await store?.child.stop();
    await cluster?.stop();
  });

  async function addPod(name: string, changes: ApiObject = {}): Promise<void> {
    const { metadata } = await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...changes },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 5,
        restartPolicy: "Never",
        containers: [{ name: "main", image: "app" }],
      },
    });
    uids.set(name, metadata.uid);
    await eventually(async () => {
      const { status }: ApiObject = await cluster.admin.get(`${pods}/${name}`);
      expect([status.phase, kubelet.problems]).toEqual(["Running", []]);
    });
  }

  /** Keeps what the agent says of a pod, once it is what is expected and all that it is made from is in the archive. */
  async function keep(name: string, expected: RegExp): Promise<void> {
    const explain = () => agent.command("explain", "pod", `default/${name}`);
    await eventually(async () => {
      const page = await explain();
      expect(page).toMatch(expected);
      const ended = `event_name:="nodekeeper.pod.ended" "k8s.pod.uid":="${uids.get(name)}"`;
      expect(await store.query(ended)).not.toEqual([]);
      expect(await agent.metric("nodekeeper_archive_queued_records")).toBe(0);
      expect(await explain()).toBe(page);
      said.set(name, page);
    });
  }

  /** A pod of a Deployment is evicted, another is deleted by hand, and the node has a taint for a while. */
  async function addPods(): Promise<void> {
    await addPod("web-5d4f9c-abcde", {
      labels: { "pod-template-hash": "5d4f9c" },
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-5d4f9c", uid: "rs-1", controller: true },
      ],
    });
    await addPod("by-hand");
    plugin.top = pick(["web-5d4f9c-abcde"]);
    plugin.threshold = {
      ...hardPressure,
      condition: { conditionName: "MemoryHot", effects: ["NoSchedule"], metCondition: true },
    };
    await eventually(async () => {
      await expect(cluster.admin.get(`${pods}/web-5d4f9c-abcde`)).rejects.toThrow();
    });
    plugin.threshold = {};
    await cluster.kubectl.run("delete", "pod", "by-hand", "--wait=true", "--grace-period=5");
    await eventually(async () => {
      saidOfNode = await agent.command("explain", "node");
      expect(saidOfNode).toMatch(
        /condition MemoryHot set(.|\n)*taint \S+MemoryHot:NoSchedule added(.|\n)*condition MemoryHot cleared/,
      );
    });
    await keep(
      "web-5d4f9c-abcde",
      /\nEvicted at .* Container main exited with code 143\.\n(.|\n)*ended +evicted/,
    );
    await keep("by-hand", /\nPod deleted at .*not by Nodekeeper\. Container main exited with code 143\.\n/);
  }

  async function endNode(): Promise<void> {
    await agent.child.stop();
    await eventually(async () => {
      // A late answer of the plugin clears the condition once more, and a record may be stored twice.
      const [row] = await store.query(
        '"nodekeeper.result":in("terminated", "cleared") | stats count_uniq("nodekeeper.result") results',
      );
      expect(row).toEqual({ results: "2" });
    });
    rmSync(join(cluster.directory, `agent-${NODE}`, "state"), { recursive: true });
    await cluster.admin.delete(`/api/v1/nodes/${NODE}`);
  }

  async function archived(...args: string[]): Promise<string> {
    const { stdout, stderr, status } = await user.run(...args, "--archive", store.url);
    if (process.env.SHOW_EXPLAIN) console.log(stdout, stderr);
    expect([status, stderr]).toEqual([0, ""]);
    return stdout;
  }

  /**
   * A page without what differs: the lines at its end, which say how far back the records go, and that the sandbox stopped,
   * which the archive does not have if it was after the pod had left the API server.
   */
  const told = (page: string) =>
    page.slice(0, page.indexOf("\nRecords go back to ")).replace(/\n.* sandbox stopped(?=\n)/, "");

  it("explains each pod as the agent did, and says that the archive answered", async () => {
    for (const [name, page] of said) {
      const answer = await archived("explain", "pod", `default/${name}`);
      expect(told(answer)).toBe(told(page));
      const source = `Answered by the archive ${store.url}: records of node ${NODE} from \\S+Z to \\S+Z\\.\\n`;
      expect(answer).toMatch(new RegExp(`\\n${source}`));
      expect(await archived("explain", "pod", uids.get(name)!)).toBe(answer);
    }
  });

  it("finds a pod by its controller, and by a time", async () => {
    const evicted = told(said.get("web-5d4f9c-abcde")!);
    for (const owner of ["deployment/web", "ReplicaSet/web-5d4f9c"])
      expect(told(await archived("explain", "pod", owner))).toBe(evicted);
    const at = new Date().toISOString();
    expect(await archived("explain", "pod", "deploy/web", "--at", at)).toMatch(
      /\nNo pod with a later record than \S+Z: this is the last one\.\n/,
    );
    expect(await archived("explain", "pod", "deploy/web", "--at", "1h")).toMatch(
      /\nIt was first seen at \S+Z, after \S+Z\.\n/,
    );
  });

  it("explains the node, with each line of the agent", async () => {
    const answer = await archived("explain", "node", NODE);
    const lines = [...saidOfNode.matchAll(/^ {2}\S+Z {2}(.*)$/gm)].map(([, message]) => message);
    expect(lines.length).toBeGreaterThan(2);
    for (const line of lines) expect(answer).toContain(line);
    expect(answer).toMatch(/agent \S+ started\n/);
    expect(answer).toMatch(/\nAnswered by the archive /);
  });

  it("lists and counts the evictions of the cluster", async () => {
    const listed = await archived("evictions", "--since", "1h");
    expect(listed).toMatch(
      /^\S+Z +worker-1 +default\/web-5d4f9c-abcde +Deployment\/web +pressure +evicted: pod deleted +memory 0\.93 > threshold 0\.8$/m,
    );
    expect(listed).toMatch(/\n1 pod selected since \S+Z on 1 node: 1 evicted, 0 not evicted\.\nAnswered by /);
    const counts = await archived("evictions", "--by", "owner,plugin,node", "-A");
    expect(
      counts
        .split("\n")
        .slice(0, 2)
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ["OWNER", "PLUGIN", "NODE", "EVICTED", "NOT EVICTED", "UNKNOWN"],
      ["default/Deployment/web", "pressure", NODE, "1", "0", "0"],
    ]);
    const json = JSON.parse(await archived("evictions", "--by", "node", "-o", "json"));
    expect(json).toMatchObject({ groups: [{ values: [NODE], evicted: 1 }] });
  });

  it("is asked by the commands of docs/archive.md", async () => {
    const shell: DocShell = {
      directory: user.home,
      env: { HOME: user.home, KUBECONFIG: join(user.home, "kubeconfig") },
      replacements: [[/http:\/\/victoria-logs\.monitoring:9428/g, store.url]],
      programs: { node: `exec "${process.execPath}" "$@"` },
    };
    prepareShell(shell);
    const path = "test/e2e/archive-query.e2e.test.ts";
    const blocks = blocksOf("docs/archive.md", (runner) => runner.kind === "test" && runner.path === path);
    expect(blocks.length).toBeGreaterThan(0);
    for (const block of blocks) expect(await runBlock(block, user.home, shell)).toEqual([]);
  });

  it("answers the saved queries, and those of the dashboard", async () => {
    const { queries } = parse(readFileSync(join(deploy, "archive-queries.yaml"), "utf8"));
    const empty: string[] = [];
    for (const { name, query } of queries) if ((await store.query(query)).length === 0) empty.push(name);
    expect(empty).toEqual([
      "Which hard requests of plugins are refused, and why?",
      "Where are records missing?",
    ]);
    const dashboard = join(deploy, "helm/nodekeeper/files/archive-dashboard.json");
    const { panels }: ApiObject = JSON.parse(readFileSync(dashboard, "utf8"));
    const without: string[] = [];
    for (const { title, targets = [] } of panels)
      for (const { expr, queryType } of targets)
        if (!(await hasAnswer(queryType, expr.replaceAll("$node", JSON.stringify(NODE)))))
          without.push(title);
    expect(without).toEqual([
      ...["Evictions with another end", "Hard requests refused"],
      ...["Claims prepared, by driver", "Gaps in the records"],
    ]);
  });

  /** Whether the store answers a panel's query, as Grafana's data source asks it, with anything. */
  async function hasAnswer(queryType: string, query: string): Promise<boolean> {
    if (queryType === "instant") return (await store.query(query)).length > 0;
    const path = queryType === "statsRange" ? "stats_query_range" : "stats_query";
    const span = { start: "1h", step: "1m" };
    const { status, data } = await store.stats(path, { query, ...span });
    expect([query, status]).toEqual([query, "success"]);
    return data.result.length > 0;
  }

  it("has the node on the page of all nodes, explained as the command does", async () => {
    await using command = user.start("page", "--archive", store.url);
    const { get } = await openFleetPage(command);
    const { nodes } = await get("fleet");
    expect(nodes).toEqual([{ node: NODE, hasAgent: false, archived: expect.anything() }]);
    expect((await get(`explain?node=${NODE}`)).text).toBe(await archived("explain", "node", NODE));
    const pod = await get(`explain?pod=default/by-hand&node=${NODE}`);
    expect(told(pod.text)).toBe(told(said.get("by-hand")!));
  });

  it("says that it has nothing of others", async () => {
    const other = await user.run("explain", "pod", "default/other", "--archive", store.url);
    expect(other).toMatchObject({ status: 1, stdout: "" });
    expect(other.stderr).toMatch(/neither a decision about the pod default\/other nor its end/);
    const elsewhere = ["--archive", store.url, "--archive-attributes", "k8s.cluster.name=test"];
    expect((await user.run("explain", "pod", "default/by-hand", ...elsewhere)).status).toBe(1);
    const node = await user.run("explain", "node", "worker-9", "--archive", store.url);
    expect(node.stderr).toMatch(/has no record of node worker-9/);
    const closed = await user.run("explain", "pod", "default/by-hand", "--archive", "http://127.0.0.1:1");
    expect(closed.stderr).toMatch(/archive http:\/\/127\.0\.0\.1:1: connect ECONNREFUSED/);
  });
});
