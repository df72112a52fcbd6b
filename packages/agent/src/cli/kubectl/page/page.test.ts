import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FleetUpdate } from "@nodekeeper/api/fleet";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { JsonRoute } from "../../../server/index.ts";
import { serveRoutes } from "../../../server/testing/serve-routes.ts";
import { startFakeLogs } from "../../archive/testing/fake-logs.ts";
import { kubectlScript } from "../testing/kubectl-script.ts";

// The command as a process, against agents' status servers, with a script for kubectl.
let directory: string;
let kubectl: string;
let child: ChildProcess | undefined;
const ends: (() => Promise<unknown> | unknown)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-page-"));
  ends.push(() => rmSync(directory, { recursive: true }));
  kubectl = kubectlScript(
    directory,
    `case "$*" in
  "get pods --all-namespaces"*) cat pods.json ;;
  "get nodes --output jsonpath="*)
    [ -f nodes ] || { echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1; }
    cat nodes ;;
  "get node n1 --output json") cat node-n1 ;;
  "get --raw /api/v1/pods?limit=500") cat all-pods ;;
  "get pod web --namespace default"*) echo n1 ;;
  "config view"*) echo team-a ;;
  port-forward*)
    for word; do case "$word" in pod/agent-*) node=\${word#pod/agent-} ;; esac; done
    [ -f "port-$node" ] || { echo "error: unable to forward port because pod is not running" >&2; exit 1; }
    echo "Forwarding from 127.0.0.1:$(cat "port-$node") -> 10290"
    echo $$ >> forwards
    exec sleep 600 ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac`,
  );
});
afterEach(async () => {
  child?.kill("SIGKILL");
  for (const end of ends.splice(0).reverse()) await end();
});

function writePods(...nodes: string[]): void {
  const items = nodes.map((node) => ({
    metadata: {
      namespace: "nodekeeper",
      name: `agent-${node}`,
      creationTimestamp: "2026-11-22T08:00:00.000Z",
    },
    spec: { nodeName: node, containers: [{}] },
    status: { phase: "Running", containerStatuses: [{ state: { running: {} } }] },
  }));
  writeFileSync(join(directory, "pods.json"), JSON.stringify({ items }));
}

async function serve(node: string): Promise<void> {
  const answers: Record<string, JsonRoute["handle"]> = {
    node: () => ({
      nodeName: node,
      version: "0.1.0",
      startedAt: 0,
      health: { ok: true, checks: [] },
      eviction: null,
    }),
    plugins: () => [],
    objects: () => [],
    version: () => ({ version: "0.1.0", nodeName: node, node: "v24", startedAt: 0 }),
    configuration: () => ({ eviction: { enabled: false } }),
    "eviction/explain": (query) => ({
      ...{
        uid: "uid-web",
        namespace: "default",
        name: query.get("pod")?.split("/")[1],
        rounds: [],
        omitted: 0,
      },
      ...{ steps: [], history: null, events: [], otherUids: [], recordsSince: null },
      coverage: { oldest: null, gaps: [] },
    }),
  };
  const routes = Object.entries(answers).map(([path, handle]) => ({ path, summary: path, handle }));
  const { address, stop } = await serveRoutes(routes);
  ends.push(stop);
  writeFileSync(join(directory, `port-${node}`), address.split(":")[1]!);
}

/** Starts the command; returns what it has printed. */
function run(...args: string[]): () => string {
  const main = join(import.meta.dirname, "../main.ts");
  child = spawn(process.execPath, [main, "page", ...args], { env: { ...process.env, KUBECTL: kubectl } });
  let printed = "";
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  return () => printed;
}

/** Starts the command; resolves with the printed address. */
async function start(...args: string[]): Promise<URL> {
  const printed = run(...args);
  const address = () => URL.parse(/http:\/\/\S+/.exec(printed())?.[0] ?? "");
  return await until("the address", address, { explain: printed });
}

async function openSession({ origin, hash }: URL): Promise<string> {
  const body = hash.replace("#token=", "");
  const answer = await fetch(`${origin}/session`, { method: "POST", body });
  return `${origin}${((await answer.json()) as { path: string }).path}`;
}

it("reads all nodes through kubectl, opens their pages, and leaves no process behind on Ctrl-C", async () => {
  writePods("n1", "n2");
  writeFileSync(join(directory, "nodes"), "n1\tTrue\t\nn2\tFalse\ttrue\nn3\tUnknown\t\n");
  await serve("n1");
  const page = await openSession(await start());
  const nodes = await until("all are read", async () => {
    const { nodes } = (await (await fetch(`${page}fleet`)).json()) as FleetUpdate;
    return nodes.every(({ hasAgent, reading, problem }) => !hasAgent || (reading ?? problem)) && nodes;
  });
  expect(nodes).toEqual([
    { node: "n1", condition: "Ready", isCordoned: false, hasAgent: true, reading: expect.anything() },
    {
      ...{ node: "n2", condition: "NotReady", isCordoned: true, hasAgent: true },
      problem: expect.stringContaining("pod is not running"),
    },
    { node: "n3", condition: "Unknown", isCordoned: false, hasAgent: false },
  ]);
  const own = await fetch(`${page}nodes/n1/`);
  expect(new URL(own.url).origin).not.toBe(new URL(page).origin);
  expect(await (await fetch(`${own.url}api/v1/node`)).json()).toMatchObject({ nodeName: "n1" });
  expect((await fetch(`${page}nodes/n9/`)).status).toBe(404);
  const pids = readFileSync(join(directory, "forwards"), "utf8").trim().split("\n").map(Number);
  child!.kill("SIGINT");
  await once(child!, "exit");
  for (const pid of pids) await eventually(() => expect(() => process.kill(pid, 0)).toThrow(/ESRCH/));
  await expect(fetch(page)).rejects.toThrow();
});

it("finds pods, explains them, and has what a node is compared by", async () => {
  writePods("n1");
  writeFileSync(join(directory, "nodes"), "n1\tTrue\t\n");
  const info = { kubeletVersion: "v1.34.1", bootID: "x" };
  writeFileSync(
    join(directory, "node-n1"),
    JSON.stringify({ status: { nodeInfo: info, capacity: { cpu: "4" } } }),
  );
  const metadata = { namespace: "default", name: "web", uid: "uid-web" };
  const items = [{ metadata, spec: { nodeName: "n1" }, status: { phase: "Running" } }];
  writeFileSync(join(directory, "all-pods"), JSON.stringify({ metadata: {}, items }));
  await serve("n1");
  const page = await openSession(await start());
  const get = async (path: string) => (await fetch(`${page}${path}`)).json();
  expect(await get("pods?text=we")).toMatchObject({ items: [{ name: "web", node: "n1" }], searched: 1 });
  for (const query of ["pod=default/web&node=n1", "pod=default/web"])
    expect(((await get(`explain?${query}`)) as { text: string }).text).toMatch(
      /^Pod default\/web {2}\(uid-web\)\n/,
    );
  expect(await get("details?node=n1")).toMatchObject({
    object: { kubeletVersion: "v1.34.1", "capacity.cpu": "4" },
    configuration: { eviction: { enabled: false } },
  });
  expect(await get("explain?pod=a/b/c")).toMatchObject({ error: { code: "invalid" } });
});

it("has nodes of the archive that are gone, explained in the words of the command", async () => {
  writePods("n1");
  writeFileSync(join(directory, "nodes"), "n1\tTrue\t\n");
  await serve("n1");
  const logs = await startFakeLogs();
  ends.push(() => logs.stop());
  const page = await openSession(await start("--archive", logs.url));
  const get = async (path: string) => (await fetch(`${page}${path}`)).json();
  const { nodes } = (await get("fleet")) as FleetUpdate;
  const times = logs.rows.map(({ _time }) => Date.parse(_time!)).sort((a, b) => a - b);
  expect(nodes.find(({ node }) => node === "worker-1")).toEqual({
    ...{ node: "worker-1", hasAgent: false },
    archived: { oldest: times[0], newest: times.at(-1) },
  });
  const explained = async (query: string) => ((await get(`explain?${query}`)) as { text: string }).text;
  expect(await explained("node=worker-1")).toMatch(/^Node worker-1\n(.|\n)*Answered by the archive http/);
  expect(await explained("pod=default/web-5d4f9c-abcde&node=worker-1")).toMatch(
    /Answered by the archive http/,
  );
});

it("calls no node gone without the permission to list nodes, or if the archive has several clusters", async () => {
  writePods("n1");
  const logs = await startFakeLogs();
  ends.push(() => logs.stop());
  const page = await openSession(await start("--archive", logs.url));
  const fleet = async () => (await (await fetch(`${page}fleet`)).json()) as FleetUpdate;
  const { nodes, archiveProblem } = await fleet();
  expect(nodes).toMatchObject([{ node: "n1", hasAgent: true }]);
  expect(archiveProblem).toMatch(/gone is not known without the permission to list nodes/);
  child!.kill("SIGKILL");
  writeFileSync(join(directory, "nodes"), "n1\tTrue\t\n");
  logs.rows.push({ ...logs.rows[0]!, "nodekeeper.record.id": "r1", "k8s.cluster.name": "test" });
  const other = await openSession(await start("--archive", logs.url));
  const update = (await (await fetch(`${other}fleet`)).json()) as FleetUpdate;
  expect(update.nodes).toMatchObject([{ node: "n1" }]);
  expect(update.archiveProblem).toMatch(/has the nodes in the clusters .*test; choose one with/);
});

it("lists the nodes also where the archive can't be read, and says why", async () => {
  writePods("n1");
  writeFileSync(join(directory, "nodes"), "n1\tTrue\t\n");
  const page = await openSession(await start("--archive", "http://127.0.0.1:1"));
  const update = (await (await fetch(`${page}fleet`)).json()) as FleetUpdate;
  expect(update.nodes).toMatchObject([{ node: "n1" }]);
  expect(update.archiveProblem).toMatch(/archive http:\/\/127\.0\.0\.1:1: connect ECONNREFUSED/);
});

it("ends with why, if there is no agent", async () => {
  writePods();
  writeFileSync(join(directory, "nodes"), "n1\tTrue\t\n");
  const printed = run();
  expect(await once(child!, "exit")).toEqual([1, null]);
  expect(printed()).toMatch(
    /no pods match app.kubernetes.io\/name=nodekeeper in any namespace; .* --agent-selector/,
  );
});
