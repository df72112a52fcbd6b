import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PodExplanation } from "@nodekeeper/api/records";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JsonRoute } from "../../server/index.ts";
import { serveRoutes } from "../../server/testing/serve-routes.ts";
import { runCommand } from "../testing/run-command.ts";
import { newestOf } from "./newest-explanation.ts";
import { runKubectlPlugin } from "./program.ts";
import { kubectlScript } from "./testing/kubectl-script.ts";

// The plugin against agents' status servers, with a script for kubectl that finds them by their pods' names.
let directory: string;
let kubectl: string;
const ends: (() => Promise<unknown> | unknown)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-kubectl-"));
  ends.push(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, "calls"), "");
  kubectl = kubectlScript(
    directory,
    `echo "$@" >> calls
case "$*" in
  "config view"*) if [ -e namespace ]; then cat namespace; else echo 'error: current-context must exist in order to minify' >&2; exit 1; fi ;;
  "get pods --all-namespaces"*) [ ! -e own ] || { echo 'Error from server (Forbidden): pods is forbidden' >&2; exit 1; }; cat pods.json ;;
  "get pods"*) cat pods.json ;;
  "get nodes"*) cat nodes 2>/dev/null || { echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1; } ;;
  "get pod "*) cat node-of-pod 2>/dev/null || { echo 'Error from server (NotFound): pods "x" not found' >&2; exit 1; } ;;
  port-forward*)
    for word; do case "$word" in pod/*) pod=\${word#pod/} ;; esac; done
    [ -f "port-$pod" ] || { echo "error: unable to forward port because pod is not running" >&2; exit 1; }
    echo "Forwarding from 127.0.0.1:$(cat "port-$pod") -> 10290"
    echo $$ >> forwards
    exec sleep 600 ;;
esac`,
  );
  writeFileSync(join(directory, "namespace"), "team-a");
  writeFileSync(join(directory, "nodes"), "node/n1\nnode/n2\nnode/n3\nnode/n4\n");
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const calls = () => readFileSync(join(directory, "calls"), "utf8").trim().split("\n");

interface Agent {
  node: string;
  namespace?: string;
  version?: string;
  plugins?: object[];
  evictions?: object[];
  /** Times of which records are missing. */
  gaps?: object[];
  /** Health checks that fail. */
  checks?: string[];
  /** Pods that it explains. */
  pods?: Record<string, object>;
  /** Absent: the pod does not run. */
  isServing?: boolean;
}

/** Agents, each with its pod. */
async function start(...agents: readonly Agent[]): Promise<void> {
  const items = agents.map(({ node, namespace = "nodekeeper", isServing = true }) => ({
    metadata: { namespace, name: `agent-${node}`, creationTimestamp: "2026-11-22T08:00:00.000Z" },
    spec: { nodeName: node, containers: [{}] },
    status: {
      phase: "Running",
      containerStatuses: [
        { state: isServing ? { running: {} } : { waiting: { reason: "CrashLoopBackOff" } } },
      ],
    },
  }));
  writeFileSync(join(directory, "pods.json"), JSON.stringify({ items }));
  for (const agent of agents) if (agent.isServing !== false) await serve(agent);
}

async function serve({
  node,
  version = "0.1.0",
  plugins = [],
  evictions = [],
  gaps = [],
  checks = [],
  pods = {},
}: Agent): Promise<void> {
  const answers: Record<string, JsonRoute["handle"]> = {
    node: () => ({
      ...{
        nodeName: node,
        version,
        startedAt: Date.now() - 7_300_000,
        eviction: { mode: "live", dryRunPlugins: [] },
      },
      health: { ok: true, checks: checks.map((name) => ({ name, ok: false, message: "is late" })) },
    }),
    plugins: () => plugins,
    objects: () => [],
    "eviction/evictions": () => ({ items: evictions, coverage: { oldest: 0, requests: 0, gaps } }),
    "eviction/node": () => ({ conditions: [], events: [], nodeName: node, at: null, recordsSince: null }),
    "eviction/explain": (query) => {
      const found = pods[query.get("pod") ?? ""];
      if (found) return found;
      throw new NodekeeperError("notFound", "no record of the pod");
    },
  };
  const routes = Object.entries(answers).map(([path, handle]) => ({ path, summary: path, handle }));
  const { address, stop } = await serveRoutes(routes);
  ends.push(stop);
  writeFileSync(join(directory, `port-agent-${node}`), address.split(":")[1]!);
}

const pluginIn = (env: Record<string, string>, ...args: string[]) =>
  runCommand((output) =>
    runKubectlPlugin(["node", "kubectl-nodekeeper", ...args], output, { ...env, KUBECTL: kubectl }),
  );
const plugin = (...args: string[]) => pluginIn({}, ...args);

const pluginRow = (name: string, more: object = {}) => ({
  ...{ name, type: "ReporterPlugin", state: "registered", versions: [], attempts: 1, contentBytes: 0 },
  ...{ registrationSocket: `/p/${name}.sock`, since: Date.now(), problems: [], ...more },
});

const explanation = (name: string, more: object = {}) => ({
  ...{ uid: `uid-${name}`, namespace: "default", name, rounds: [], omitted: 0, steps: [], history: null },
  ...{ events: [], otherUids: [], recordsSince: null, coverage: { oldest: null, gaps: [] }, ...more },
});

describe("status", () => {
  it("of a node is the page of its agent", async () => {
    await start(
      { node: "n1" },
      { node: "n2", plugins: [pluginRow("good"), pluginRow("bad", { error: "no answer" })] },
    );
    const { out, status } = await plugin("status", "n2");
    expect(status).toBe(0);
    expect(out).toMatch(
      /^Node n2\nAgent: +nodekeeper 0\.1\.0, started .*Z \(2h ago\)\nHealth: +ready\nPlugins: +2, 1 failing:\n {2}bad: no answer\n/,
    );
    expect((await plugin("status", "--node", "n2", "-o", "json")).out).toContain('"node": "n2"');
  });

  it("of all nodes has a row each: what fails, what is refused, evictions, versions, and who does not answer", async () => {
    const web = { uid: "u1", namespace: "default", name: "web", dryRun: false };
    const deleted = { ...web, outcome: { result: "terminated", message: "pod deleted" } };
    const dryRun = { ...web, name: "db", dryRun: true, outcome: null };
    await start(
      { node: "n1", evictions: [deleted, dryRun] },
      {
        node: "n2",
        version: "0.0.9",
        checks: ["ReporterPublished"],
        plugins: [
          pluginRow("bad", { error: "no answer", errorId: "NK1805" }),
          pluginRow("odd", { problems: ["field x"] }),
        ],
      },
      { node: "n3", isServing: false },
    );
    const { out, status } = await plugin("status");
    const lines = out.split("\n").map((line) => line.split(/ {2,}/));
    expect(lines[0]).toEqual(
      "NODE AGENT VERSION AGE PLUGINS FAILING REFUSED EVICTION EVICTED DRY-RUN CONDITIONS".split(" "),
    );
    expect(lines.slice(1, 5)).toEqual([
      ["n1", "ready", "0.1.0", "2h", "0", "0", "0", "live", "1", "1", "0"],
      ["n2", "not ready", "0.0.9", "2h", "2", "1", "1", "live", "0", "0", "0"],
      ["n3", "no answer", ...Array(9).fill("-")],
      ["n4", "none", ...Array(9).fill("-")],
    ]);
    expect(out).toMatch(/^n2 +not ready +ReporterPublished +is late$/m);
    expect(out).toMatch(/^n2 +failing +bad +NK1805: no answer$/m);
    expect(out).toMatch(/^n2 +refused +odd +field x$/m);
    expect(out).toMatch(
      /^n3 +no answer +- +can't query the agent on node n3: pod agent-n3 is CrashLoopBackOff$/m,
    );
    expect(out).toContain(
      "4 nodes; 1 without an answer; 1 without an agent; 1 eviction in the last hour; versions: 0.0.9 on 1, 0.1.0 on 1\n",
    );
    // As a check fails: scripts notice.
    expect(status).toBe(1);
    const json = JSON.parse((await plugin("status", "-o", "json")).out);
    expect(json).toMatchObject({
      nodes: [{ node: "n1", eviction: { evicted: ["default/web"] } }, { node: "n2" }],
      unanswered: [
        { node: "n3", hasAgent: true },
        { node: "n4", hasAgent: false },
      ],
      versions: { "0.0.9": 1, "0.1.0": 1 },
    });
  });

  it("rejects an unknown variable before kubectl is called", async () => {
    const { status, stderr } = await pluginIn({ NODEKEEPER_NAMESPCE: "agents" }, "status");
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining(
        "env NODEKEEPER_NAMESPCE: unknown variable; did you mean NODEKEEPER_NAMESPACE?",
      ),
    ]);
  });

  it("tells evictions of the last hour from recorded ones where records of it are missing", async () => {
    const [from, to] = [Date.now() - 1_800_000, Date.now() - 600_000];
    await start({ node: "n1", gaps: [{ from, to, why: "the disk was full" }] }, { node: "n2" });
    const one = (await plugin("status", "n1")).out;
    expect(one).toMatch(
      /^Evicted: +0 pods recorded in the last hour\n {2}Records are missing between .*full\.$/m,
    );
    expect((await plugin("status", "n2")).out).toMatch(/^Evicted: +0 pods in the last hour\nConditions/m);
    expect((await plugin("status")).out).toContain("0 evictions recorded in the last hour");
  });

  it("of all nodes shows those with agents where the caller may not list nodes", async () => {
    await start({ node: "n1" });
    rmSync(join(directory, "nodes"));
    const { out, status } = await plugin("status");
    expect(out).toContain("1 node; all agents answered");
    expect(status).toBe(0);
  });
});

describe("explain pod", () => {
  it("asks the agent of the pod's node first, and no other where that has a record", async () => {
    await start(
      { node: "n1", pods: { "default/web": explanation("web") } },
      { node: "n2", pods: { "default/web": explanation("web") } },
    );
    writeFileSync(join(directory, "node-of-pod"), "n2");
    const { out, status } = await plugin("explain", "pod", "default/web");
    expect(status).toBe(0);
    expect(out).toContain("Pod default/web");
    expect(calls().filter((call) => call.startsWith("port-forward"))).toEqual([
      expect.stringContaining("pod/agent-n2 :10290"),
    ]);
  });

  it("finds a deleted pod on the node that it was on: of several the one where it was last", async () => {
    const left = (leftAt: number) => ({ steps: [{ at: leftAt, message: `left at ${leftAt}` }] });
    await start(
      { node: "n1", pods: { "team-a/web": explanation("web", left(1_000)) } },
      { node: "n2", pods: { "team-a/web": explanation("web", left(2_000)) } },
      { node: "n3" },
    );
    const { out, stderr, status } = await plugin("explain", "pod", "web");
    expect(status).toBe(0);
    expect(out).toContain("left at 2000");
    expect(stderr).toBe("");
    const source = ["Answered by the agent on node n2.", "For other pods of this name, use --node n1."];
    expect(out.trimEnd().split("\n").slice(-2)).toEqual(source);
    const json = JSON.parse((await plugin("explain", "pod", "web", "-o", "json")).out);
    expect(json.source).toEqual({ kind: "agent", node: "n2", notes: source.slice(1) });
  });

  it("takes a pod that still exists for later than one that was found deleted after it", async () => {
    const existing = { history: { seenAt: 1_000, leftAt: null } as unknown as PodExplanation["history"] };
    const deleted = { history: { seenAt: 500, leftAt: 2_000 } as unknown as PodExplanation["history"] };
    const answers = [
      { node: "n1", hasAgent: true, answer: explanation("web", deleted), error: undefined },
      { node: "n2", hasAgent: true, answer: explanation("web", existing), error: undefined },
    ];
    expect(newestOf(answers, "default/web", true).node).toBe("n2");
    expect(newestOf(answers.toReversed(), "default/web", true).node).toBe("n2");
  });

  it.each([
    ["given by its name, and gone", 2_000, true, true],
    ["given by its UID", 2_000, false, false],
    ["that still exists", null, true, false],
  ])("of a pod %s, agents that did not answer are named: %s %s %s", (_, leftAt, isByName, isNamed) => {
    const history = { seenAt: 500, leftAt } as unknown as PodExplanation["history"];
    const found = { node: "n1", hasAgent: true, answer: explanation("web", { history }), error: undefined };
    const silent = { node: "n2", hasAgent: true, answer: undefined, error: new Error("timed out") };
    const { notes } = newestOf([found, silent], "default/web", isByName);
    expect(notes.some((note) => note.includes("n2 (timed out)"))).toBe(isNamed);
  });

  it("names the agents that did not answer, where another one has a pod of this name", async () => {
    await start(
      { node: "n1", pods: { "default/web": explanation("web") } },
      { node: "n2", isServing: false },
    );
    writeFileSync(join(directory, "node-of-pod"), "n2");
    const { out, status } = await plugin("explain", "pod", "default/web");
    expect(status).toBe(0);
    expect(out).toContain("Answered by the agent on node n1.");
    expect(out).toMatch(/A later pod of this name may be on a node whose agent did not answer: n2 \(/);
  });

  it.each([
    ["that the pod of the command has", { POD_NAMESPACE: "team-b" }, "team-b"],
    ["default", {}, "default"],
  ])("looks in the namespace %s where there is no context, as in a pod", async (_, env, namespace) => {
    rmSync(join(directory, "namespace"));
    await start({ node: "n1", pods: { [`${namespace}/web`]: explanation("web") } });
    const run = await pluginIn(env, "explain", "pod", "web");
    expect(run).toMatchObject({ status: 0, stderr: "" });
  });

  it("reports which agents did not answer where none has a record", async () => {
    await start({ node: "n1" }, { node: "n2", isServing: false });
    const silent = await plugin("explain", "pod", "-n", "default", "web");
    expect(silent.status).toBe(1);
    expect(silent.stderr).toMatch(
      /NK1710: no record of pod default\/web: queried 2 agents, of which 1 did not answer: n2 \(/,
    );
    await start({ node: "n1" });
    expect((await plugin("explain", "pod", "default/web")).stderr).toMatch(
      /NK1606: no record of pod default\/web: queried 1 agent: n1 \(.+\)\n/,
    );
  });
});

describe("kubectl", () => {
  it("gets the caller's context, kubeconfig and identity in each call", async () => {
    await start({ node: "n1" });
    const flags = [
      "--context",
      "prod",
      "--kubeconfig=/k",
      "--as",
      "ann",
      "--as-group",
      "a",
      "--as-group",
      "b",
    ];
    expect((await plugin("status", "n1", ...flags)).status).toBe(0);
    const passed = "--context=prod --kubeconfig=/k --as=ann --as-group=a --as-group=b";
    expect(calls()).toEqual([
      expect.stringMatching(new RegExp(`^get pods --all-namespaces .* ${passed}$`)),
      expect.stringMatching(new RegExp(`^port-forward --namespace nodekeeper .* ${passed}$`)),
    ]);
  });

  it("finds the agents of two releases in their namespaces, and only those of one with --agent-namespace", async () => {
    await start({ node: "n1", namespace: "general" }, { node: "n2", namespace: "gpu" });
    const forwards = () => calls().filter((call) => call.startsWith("port-forward"));
    expect((await plugin("plugins", "--node", "n2")).status).toBe(0);
    expect((await plugin("plugins", "--node", "n1")).status).toBe(0);
    expect(forwards()).toEqual([
      expect.stringMatching(/--namespace gpu .*pod\/agent-n2/),
      expect.stringMatching(/--namespace general .*pod\/agent-n1/),
    ]);
    await plugin("plugins", "--node", "n2", "--agent-namespace", "gpu");
    expect(calls().at(-2)).toMatch(/^get pods --namespace gpu /);
  });

  it("looks in the namespace nodekeeper without the right to list pods in all", async () => {
    await start({ node: "n1" });
    writeFileSync(join(directory, "own"), "");
    expect((await plugin("plugins")).status).toBe(0);
    expect(calls().map((call) => call.split(" ").slice(0, 4).join(" "))).toEqual([
      "get pods --all-namespaces --selector",
      "get pods --namespace nodekeeper",
      "port-forward --namespace nodekeeper --address=127.0.0.1",
    ]);
    writeFileSync(join(directory, "pods.json"), '{"items":[]}');
    expect((await plugin("plugins")).stderr).toMatch(/NK1716: no pods match .* in the namespace nodekeeper;/);
    rmSync(join(directory, "own"));
    expect((await plugin("plugins")).stderr).toMatch(/NK1716: no pods match .* in any namespace;/);
  });

  it("leaves no process behind", async () => {
    await start({ node: "n1" }, { node: "n2" });
    await plugin("status");
    const pids = readFileSync(join(directory, "forwards"), "utf8").trim().split("\n").map(Number);
    expect(pids).toHaveLength(2);
    for (const pid of pids) await eventually(() => expect(() => process.kill(pid, 0)).toThrow(/ESRCH/));
  });

  it.each([
    [["plugins"], 2, /specify a node with --node: n1, n2\n/],
    [["plugins", "--node", "nx"], 1, /NK1716: no agent on node nx; agents run on n1, n2/],
    [["plugins", "--parallel", "0", "--node", "n1"], 2, /--parallel must be a whole number/],
  ])("%s exits with %i and reports why", async (args, status, message) => {
    await start({ node: "n1" }, { node: "n2" });
    expect(await plugin(...args)).toMatchObject({ status, stderr: expect.stringMatching(message) });
  });

  it("is named where it is not found, and its own error is printed with what it means", async () => {
    await start({ node: "n1" });
    kubectlScript(directory, "echo 'Error from server (Forbidden): pods is forbidden' >&2\nexit 1");
    const refused = await plugin("plugins");
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(
      /NK1715: kubectl get: Error from server \(Forbidden\).*\n {2}Cause: .*portforward/,
    );
    rmSync(kubectl);
    expect((await plugin("plugins")).stderr).toMatch(/NK1714: failed to run kubectl \(spawn .* ENOENT\)/);
  });

  it("passes on what an exec plugin of the kubeconfig writes to its user", async () => {
    await start({ node: "n1" });
    const script = readFileSync(kubectl, "utf8");
    writeFileSync(kubectl, script.replace("#!/bin/sh\n", "#!/bin/sh\necho 'open https://login' >&2\n"));
    const { stderr, status } = await plugin("plugins");
    expect(status).toBe(0);
    expect(new Set(stderr.trim().split("\n"))).toEqual(new Set(["open https://login"]));
  });
});
