import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CodeBlock, readMarkdown } from "../../scripts/docs/markdown.ts";
import { withPublication } from "../../scripts/docs/publication.ts";
import type { BlockRunner } from "../support/code-blocks.ts";
import { blocksOf, type DocShell, prepareShell, runBlock, startBlock } from "../support/doc-blocks.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { defineKinds } from "./support/define-kinds.ts";
import { openFleetPage } from "./support/fleet-page.ts";
import { freePort } from "./support/free-port.ts";
import { PluginUser } from "./support/kubectl-plugin.ts";
import { RollingLoad } from "./support/node/rolling-load.ts";
import { podsPath, untilDeleted, untilPodReady, pod as workload } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";
import { serviceAccountUser } from "./support/nodekeeper-install.ts";
import { missingParts, pathOf } from "./support/parts.ts";
import { sample } from "./support/sample.ts";
import { getOverTls } from "./support/tls-get.ts";

const execute = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const chart = join(root, "deploy/helm/nodekeeper");
const IMAGE = "nodekeeper.invalid/nodekeeper";
const NAMESPACE = "nodekeeper";
const cnrPath = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources";
const missing = missingForNode() ?? missingParts("helm");

const pageBlock = (blocks: readonly CodeBlock[]) =>
  blocks.find(({ text }) => text.includes("kubectl nodekeeper page"));
const isForHere = (runner: BlockRunner) =>
  runner.kind === "test" && runner.path === "test/e2e/helm.e2e.test.ts";

// What an operator does: the image from this checkout, the chart, a real Helm, and a real kubelet that runs the pod.
describe.skipIf(missing)("the chart on a real node", () => {
  let directory: string;
  let cluster: ControlPlane;
  let node: ClusterNode;
  let values: string[];
  let server: string;
  let shell: DocShell;
  // From source, also once a release is published.
  const blocksFor = (page: string) =>
    blocksOf(page, isForHere, withPublication(page, readFileSync(join(root, page), "utf8"), ""));
  const [install, operate, remove] = blocksFor("docs/guides/install.md");
  const [operator, prometheus] = blocksFor("docs/guides/monitoring.md");
  let statusPort: number;
  /** Of the status server for other machines. */
  let remotePort: number;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-helm-"));
    const image = join(directory, "image.tar");
    const node24 = join(root, "node_modules/.bin/node");
    const architecture = process.arch === "x64" ? "amd64" : process.arch;
    const dist = join(directory, "dist");
    await execute(node24, ["scripts/build.ts", dist], { cwd: root });
    const args = ["--arch", architecture, "--name", `${IMAGE}:e2e`, "--dist", dist, "--output", image];
    await execute(node24, ["scripts/image.ts", ...args], { cwd: root });
    cluster = await startControlPlane({ accounts: true });
    // The API server reaches it at the address of the Node.
    node = await startNode(cluster, { kubelet: { address: "0.0.0.0" } });
    await node.containerd.ctr("image", "import", "--snapshotter", "native", image);
    statusPort = await freePort();
    remotePort = await freePort();
    server = `http://127.0.0.1:${statusPort}`;
    values = [
      ...[`image.repository=${IMAGE}`, "image.tag=e2e", "image.pullPolicy=Never"],
      ...["kubernetesService.host=127.0.0.1", `kubernetesService.port=${cluster.port}`],
      ...[`hostPaths.runtime=${dirname(node.containerd.socket)}`, `statusServer.port=${statusPort}`],
      `lifecycle.runtimeEndpoint=unix://${node.containerd.socket}`,
      ...["statusServer.remote.enabled=true", `statusServer.remote.port=${remotePort}`],
    ].flatMap((value) => ["--set", value]);
    // The documentation's commands as they are, but for what belongs to this node.
    const more = [...values, "--wait", "--timeout", "4m"].join(" ");
    shell = {
      directory,
      env: { HOME: directory, KUBECONFIG: join(cluster.directory, "admin.kubeconfig") },
      replacements: [
        [/REGISTRY\/nodekeeper/g, IMAGE],
        [/\/usr\/local\/bin/g, join(directory, "bin")],
        [/\bdist\/nodekeeper\//g, `${dist}/nodekeeper/`],
      ],
      programs: {
        node: `exec "${node24}" "$@"`,
        kubectl: `exec "${pathOf("kubectl")}" "$@"`,
        helm: `case $1 in install | upgrade) set -- "$@" ${more} ;; esac; exec "${pathOf("helm")}" "$@"`,
      },
    };
    prepareShell(shell);
  });

  afterAll(async () => {
    await node?.stop();
    await cluster?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  async function helm(...args: readonly string[]): Promise<string> {
    const env = {
      HOME: directory,
      KUBECONFIG: join(cluster.directory, "admin.kubeconfig"),
      PATH: process.env.PATH,
    };
    const words = [...args, "--namespace", NAMESPACE];
    const { stdout } = await execute(pathOf("helm"), words, { env, timeout: 300_000 });
    return stdout;
  }

  const status = async (path: string) => (await fetch(server + path)).text();
  const podOf = async () => {
    const { items } = await cluster.admin.get(`/api/v1/namespaces/${NAMESPACE}/pods`);
    return (items as ApiObject[]).filter(({ metadata }) => !metadata.deletionTimestamp);
  };
  const zones = async () => (await cluster.admin.get(`${cnrPath}/${node.name}`)).status.topologyZone?.length;

  it("installs as docs/guides/install.md shows: the agent is ready, sees the node, and evicts nothing", async () => {
    expect(await runBlock(install!, root, shell)).toEqual([]);
    const [pod] = await podOf();
    expect(pod?.spec.containers[0].securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
    await eventually(async () => expect(await status("/readyz?verbose")).toMatch(/readyz check passed/));
    await eventually(async () => expect(await zones()).toBeGreaterThan(0));
    expect(JSON.parse(await status("/api/v1/configuration"))).toMatchObject({
      eviction: { enabled: true, dryRunPlugins: ["*"] },
    });
  });

  it("passes its own test: a pod without rights finds the agent of the node ready, and is deleted", async () => {
    expect(await helm("test", "nodekeeper", "--timeout", "3m")).toMatch(/^Phase: +Succeeded$/m);
    await eventually(async () =>
      expect((await podOf()).map(({ metadata }) => metadata.name)).not.toContain("nodekeeper-test"),
    );
  });

  it("answers kubectl nodekeeper: with the rights of a Role, and the credentials of an exec plugin", async () => {
    const plugin = join(directory, "dist/nodekeeper/kubectl-nodekeeper.cjs");
    const userOf = (name: string, group: string) => PluginUser.create(cluster, { name, group, plugin });
    const blocks = ["docs/guides/kubectl-plugin.md", "docs/kubectl-plugin.md"].flatMap(blocksFor);
    const [outputs = [], commands = []] = [true, false].map((isOutput) =>
      blocks.filter((block) => (block.language === "console") === isOutput && block !== pageBlock(blocks)),
    );
    expect(commands.length).toBeGreaterThan(1);
    for (const block of commands) expect(await runBlock(block, root, shell)).toEqual([]);

    const ann = await userOf("ann", "node-operators");
    const fleet = await ann.run("status");
    expect(fleet).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("1 node; all agents answered"),
    });
    expect(fleet.stdout).toMatch(new RegExp(`^${node.name} +ready +0\\.`, "m"));
    expect((await ann.run("status", node.name)).stdout).toMatch(/^Eviction: +dry run/m);

    // The node is found although the pod is deleted, and she may not see pods of this namespace.
    await cluster.admin.create(podsPath, workload("guest"));
    await untilPodReady(cluster, "guest");
    await eventually(async () =>
      expect((await ann.run("explain", "pod", "guest")).stdout).toContain("container main started"),
    );
    // The API server's time of the deletion has whole seconds: it must not be before the start that the page shows.
    await sleep(1_100);
    await cluster.admin.delete(`${podsPath}/guest`);
    await untilDeleted(cluster, "guest");
    const why = await eventually(async () => {
      const ran = await ann.run("explain", "pod", "guest");
      expect(ran.stdout).toMatch(/^Pod deleted at /m);
      return ran;
    });
    expect(why.status).toBe(0);
    // The archive is not asked: nothing is there.
    const archived = await ann.run("explain", "pod", "guest", "--archive", "http://127.0.0.1:1");
    expect(archived.stdout).toContain(`\nAnswered by the agent on node ${node.name}.\n`);
    const [pod] = await podOf();
    shell.replacements = [...shell.replacements, [/nodekeeper-abcde/g, pod!.metadata.name]];
    for (const block of outputs) expect(await runBlock(block, root, shell)).toEqual([]);
    const events = await ann.run("events", "guest", "-o", "yaml");
    expect(events.stdout).toMatch(/^ {2}type: ContainerDied$/m);
    const bob = await userOf("bob", "others");
    const refused = expect.stringMatching(/NK1715: kubectl get: .*"bob" cannot list resource "pods"/);
    expect(await bob.run("status")).toMatchObject({ status: 1, stderr: refused });
  });

  it("serves the page of all nodes: with the rights of a Role, by real port-forwards, to the one who started it", async () => {
    const plugin = join(directory, "dist/nodekeeper/kubectl-nodekeeper.cjs");
    const shown = startBlock(pageBlock(blocksFor("docs/guides/kubectl-plugin.md"))!, root, shell);
    const cat = await PluginUser.create(cluster, { name: "cat", group: "node-operators", plugin });
    await using command = cat.start("page");
    await until("the link is printed", () => /#token=/.test(shown.output()), { explain: shown.output });
    await shown[Symbol.asyncDispose]();
    const { address, get } = await openFleetPage(command);
    expect(await (await fetch(address)).text()).toContain("<title>Nodes");
    const { nodes } = await until("the node is read", async () => {
      const update = await get("fleet");
      return update.nodes[0]?.reading && update;
    });
    // She may list no nodes, so that its own condition is not known.
    expect(nodes).toMatchObject([
      { node: node.name, hasAgent: true, reading: { isReady: true, mode: "dryRun" } },
    ]);
    expect(nodes[0]).not.toHaveProperty("condition");
    const own = await fetch(`${address}nodes/${node.name}/`, { headers: { accept: "text/html" } });
    expect(await own.text()).toContain("<title>Nodekeeper");
    expect(await (await fetch(`${own.url}api/v1/node`)).json()).toMatchObject({ nodeName: node.name });
    const { configuration } = await get(`details?node=${node.name}`);
    expect(configuration.eviction.enabled).toBe(true);
    expect((await get("pods?text=x")).error.message).toMatch(/"cat" cannot list resource "pods"/);
  });

  /** The certificate's authority, as Prometheus has it. */
  const authority = async () => {
    const { data } = await cluster.admin.get(`/api/v1/namespaces/${NAMESPACE}/secrets/nodekeeper-tls`);
    return Buffer.from(data["ca.crt"], "base64").toString();
  };

  it("lets Prometheus read metrics over TLS as docs/guides/monitoring.md shows, and others not", async () => {
    const ca = await authority();
    const serverName = "nodekeeper.nodekeeper.svc";
    const get = (token?: string) => getOverTls({ port: remotePort, path: "/metrics", ca, serverName, token });
    await cluster.kubectl.run("create", "namespace", "monitoring");
    const tokenOf = async (account: string) => {
      await cluster.kubectl.run("create", "serviceaccount", account, "-n", "monitoring");
      return (await cluster.kubectl.run("create", "token", account, "-n", "monitoring")).trim();
    };
    expect((await get()).status).toBe(401);
    // A refusal is remembered for ten seconds: not with the token that is allowed next.
    expect((await get(await tokenOf("other"))).text).toContain("other may not get /metrics");
    expect(await runBlock(prometheus!, root, shell)).toEqual([]);
    const token = await tokenOf("prometheus");
    await eventually(async () => expect((await get(token)).text).toMatch(/^nodekeeper_build_info\{/m));
  });

  it("has what the Prometheus operator reads after the commands of docs/guides/monitoring.md", async () => {
    await defineKinds(cluster, "monitoring.coreos.com", ["PodMonitor", "PrometheusRule"]);
    expect(await runBlock(operator!, root, shell)).toEqual([]);
    const found = await cluster.kubectl.run(
      ...["get", "podmonitors,prometheusrules", "-n", NAMESPACE, "-l", "release=prometheus", "-o", "name"],
    );
    expect(found.trim().split("\n")).toHaveLength(2);
  });

  it("shows the page by the port-forward of docs/guides/page.md", async () => {
    const [forward] = blocksFor("docs/guides/page.md");
    const local = await freePort();
    const replacements = [...shell.replacements, [/\b10290:10290\b/g, `${local}:${statusPort}`]] as const;
    await using _ = startBlock(forward!, root, { ...shell, replacements });
    await eventually(async () => {
      const response = await fetch(`http://127.0.0.1:${local}/`, { headers: { accept: "text/html" } });
      expect(await response.text()).toMatch(/<title>/);
    });
  });

  it("is upgraded under load and rolled back: nothing is withdrawn, no event lost, no pod evicted", async () => {
    const load = await RollingLoad.start(cluster, node, node.path("/run/nodekeeper/nodekeeper.sock"));
    const ca = await authority();
    const { uid } = (await cluster.admin.get(`${cnrPath}/${node.name}`)).metadata;
    const seen = sample(zones);
    const before = await zones();
    const [pod] = await podOf();
    // It lets the agent evict.
    expect(await runBlock(operate!, root, shell)).toEqual([]);
    await eventually(async () =>
      expect(JSON.parse(await status("/api/v1/configuration"))).toMatchObject({
        eviction: { dryRunPlugins: [] },
      }),
    );
    // It replaced no pod: the running agent applied the setting. A setting that needs a restart replaces it.
    expect((await podOf()).map(({ metadata }) => metadata.uid)).toEqual([pod!.metadata.uid]);
    const more = ["--reuse-values", "--set", "config.devices.settleTime=31s", "--wait", "--timeout", "4m"];
    await helm("upgrade", "nodekeeper", chart, ...more);
    expect((await podOf()).map(({ metadata }) => metadata.uid)).not.toContain(pod!.metadata.uid);
    await helm("rollback", "nodekeeper", "1", "--wait", "--timeout", "4m");
    await eventually(async () =>
      expect(JSON.parse(await status("/api/v1/configuration"))).toMatchObject({
        eviction: { dryRunPlugins: ["*"] },
      }),
    );
    for (const each of await seen.stop()) expect(each).toBe(before);
    expect((await cluster.admin.get(`${cnrPath}/${node.name}`)).metadata.uid).toBe(uid);
    expect(await load.check()).toBeGreaterThan(10);
    await load.stop();
    const evictions = cluster.audit
      .requests({ user: serviceAccountUser })
      .filter(({ objectRef, verb }) => objectRef?.subresource === "eviction" || verb === "delete");
    expect(evictions).toEqual([]);
    // Made once, although Helm rendered its template several times.
    expect(await authority()).toBe(ca);
  });

  it("loads a policy from a ConfigMap as docs/guides/policies.md shows", async () => {
    const page = readFileSync(join(root, "docs/guides/policies.md"), "utf8");
    for (const { text } of readMarkdown(page).blocks) {
      const [, file] = /^# (batch|values)\.yaml$/m.exec(text) ?? [];
      if (file) writeFileSync(join(directory, `${file}.yaml`), text);
    }
    const [load] = blocksFor("docs/guides/policies.md");
    // Its files are there, and the chart is not.
    const replacements = [...shell.replacements, [/deploy\/helm\/nodekeeper/g, chart]] as const;
    expect(await runBlock(load!, directory, { ...shell, replacements })).toEqual([]);
    await eventually(async () =>
      expect(JSON.parse(await status("/api/v1/plugins"))).toContainEqual(
        expect.objectContaining({ name: "policy-batch-first" }),
      ),
    );
  });

  it("is what deploy/manifests has for those without Helm", async () => {
    // Without hooks, which kubectl would run at once.
    const rendered = await helm("template", "nodekeeper", chart, "--no-hooks");
    // Before it stand a comment and the namespace.
    const file = readFileSync(join(root, "deploy/manifests/nodekeeper.yaml"), "utf8");
    expect(file.slice(file.indexOf("---"))).toBe(rendered);
  });

  it("has what its commands need: errors with their remedies", async () => {
    const command = [
      "run",
      "--rm",
      "--snapshotter",
      "native",
      `${IMAGE}:e2e`,
      "once",
      "nodekeeper",
      "plugins",
      "list",
      "--server",
      "127.0.0.1:1",
    ];
    const failure = await node.containerd.ctr(...command).catch((error) => error);
    expect(`${failure.stdout}${failure.stderr}`).toMatch(/: NK\d{4}: [\s\S]*Remedy: /);
  });

  it("refuses values that the schema does not know", async () => {
    await expect(helm("template", "nodekeeper", chart, "--set", "evictions.dryRun=false")).rejects.toThrow(
      /evictions/,
    );
  });

  it("leaves nothing of it in the cluster when it is upgraded, rolled back and uninstalled as docs/guides/install.md shows", async () => {
    expect(await runBlock(remove!, root, shell)).toEqual([]);
    const selector = "app.kubernetes.io/instance=nodekeeper";
    const kinds =
      "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";
    await eventually(async () => {
      const left = await cluster.kubectl.run("get", kinds, "-l", selector, "-o", "name");
      const more = await cluster.kubectl.run(
        "get",
        "all,configmaps,serviceaccounts,secrets",
        "-n",
        NAMESPACE,
        "-l",
        selector,
        "-o",
        "name",
      );
      expect(left + more).toBe("");
    });
    const definitions = await cluster.kubectl.run("get", "customresourcedefinitions", "-o", "name");
    // The definition stays, for objects of other clients. The hook has removed what the agent published.
    expect(definitions).toContain("customnoderesources");
    expect((await cluster.admin.get(cnrPath)).items).toEqual([]);
    const live = await cluster.admin.get(`/api/v1/nodes/${node.name}`);
    const managers = (live.metadata.managedFields as ApiObject[]).map(({ manager }) => manager);
    expect(managers.filter((manager) => manager.startsWith("nodekeeper"))).toEqual([]);
    const slices = await cluster.kubectl.run("get", "resourceslices", "-o", "name");
    expect(slices).toBe("");
  });

  it("is installed for each of two pools of nodes as docs/install.md shows", async () => {
    await cluster.kubectl.run("delete", "crd", "customnoderesources.node.katalyst.kubewharf.io");
    for (const block of blocksFor("docs/install.md")) expect(await runBlock(block, root, shell)).toEqual([]);
    const { items } = await cluster.admin.get(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`);
    expect((items as ApiObject[]).map(({ spec }) => spec.template.spec.nodeSelector.pool).sort()).toEqual([
      "general",
      "gpu",
    ]);
  });

  it("is installed as README.md shows", async () => {
    for (const release of ["general", "gpu"]) await helm("uninstall", release, "--no-hooks");
    await cluster.kubectl.run("delete", "crd", "customnoderesources.node.katalyst.kubewharf.io");
    const [block] = blocksFor("README.md");
    expect(await runBlock(block!, root, shell)).toEqual([]);
    expect(await status("/readyz?verbose")).toMatch(/readyz check passed/);
  });
});
