import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hasOpenssl, makeAuthority } from "../../../../core/src/kube/testing/certificates.ts";
import { serveRoutes } from "../../server/testing/serve-routes.ts";
import { runKubectlPlugin } from "../kubectl/program.ts";
import { kubectlScript } from "../kubectl/testing/kubectl-script.ts";
import { runCommand } from "../testing/run-command.ts";
import { type FakeLogs, recordedRows, startFakeLogs } from "./testing/fake-logs.ts";
import type { LogsRow } from "./victoria-logs.ts";

// `kubectl nodekeeper` with an archive, and a script for kubectl.
const POD = "default/web-5d4f9c-abcde";
let directory: string;
let kubectl: string;
let logs: FakeLogs;
const ends: (() => unknown)[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-archive-"));
  ends.push(() => rmSync(directory, { recursive: true }));
  kubectl = kubectlScript(
    directory,
    `case "$*" in
  "config view"*) echo default ;;
  "get pods"*) cat pods.json ;;
  "get pod "*) echo 'Error from server (NotFound): pods "x" not found' >&2; exit 1 ;;
  port-forward*) echo "Forwarding from 127.0.0.1:$(cat port) -> 10290"; exec sleep 600 ;;
esac`,
  );
  writeFileSync(join(directory, "pods.json"), '{"items":[]}');
  logs = await start();
});

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const end of ends.splice(0).reverse()) await end();
});

async function start(): Promise<FakeLogs> {
  const fake = await startFakeLogs();
  ends.push(() => fake.stop());
  return fake;
}

const pluginAlone = (...args: string[]) =>
  runCommand((output) =>
    runKubectlPlugin(["node", "kubectl-nodekeeper", ...args], output, { KUBECTL: kubectl }),
  );
/** With the archive from the environment. */
function pluginFrom(urls: string, ...args: string[]) {
  vi.stubEnv("NODEKEEPER_ARCHIVE", urls);
  return pluginAlone(...args);
}
const plugin = (...args: string[]) => pluginAlone(...args, "--archive", logs.url);

const uidOf = (name: string) => recordedRows().find((row) => row["k8s.pod.name"] === name)!["k8s.pod.uid"]!;

/** Starts the agent of the node, which explains this pod. */
async function startAgent(pod: string, explanation: object): Promise<void> {
  const handle = (query: URLSearchParams) => {
    if (query.get("pod") === pod) return explanation;
    throw new Error("another pod");
  };
  const { address, stop } = await serveRoutes([{ path: "eviction/explain", summary: "", handle }]);
  ends.push(stop);
  writeFileSync(join(directory, "port"), address.split(":")[1]!);
  const item = {
    metadata: { namespace: "nodekeeper", name: "agent", creationTimestamp: "2026-11-22T08:00:00Z" },
    spec: { nodeName: "worker-1", containers: [{}] },
    status: { phase: "Running", containerStatuses: [{ name: "nodekeeper", state: { running: {} } }] },
  };
  writeFileSync(join(directory, "pods.json"), JSON.stringify({ items: [item] }));
}

const explanation = (uid: string) => ({
  ...{ uid, namespace: "default", name: "web", rounds: [], omitted: 0, steps: [], history: null },
  ...{ events: [], otherUids: [], recordsSince: null, coverage: { oldest: null, gaps: [] } },
});

/** A row like a recorded one. */
function rowLike(event: string, changes: LogsRow, body?: object): LogsRow {
  const row = recordedRows().find(({ event_name }) => event_name === event)!;
  return { ...row, ...changes, ...(body ? { _msg: JSON.stringify(body) } : {}) };
}

describe("explain pod, from the archive", () => {
  it("has the words of the agent, each record once although the store has each twice", async () => {
    logs.rows.push(...recordedRows());
    const { out, status } = await plugin("explain", "pod", POD);
    expect(status).toBe(0);
    expect(out).toMatch(
      /\nEvicted at \S+Z \(round 1\), pod deleted after 0\.4 s: requested by pressure: memory 0\.93 > threshold 0\.8\. Container main exited with code 143\.\n/,
    );
    expect(out.match(/POST eviction: accepted\n/g)).toHaveLength(1);
    expect(out.match(/^Round \d/gm)).toHaveLength(2);
    expect(out).toMatch(/\nAnswered by the archive http:\S+: records of node worker-1 from \S+Z to \S+Z\.\n/);
    expect(await plugin("explain", "pod", uidOf("web-5d4f9c-abcde"))).toMatchObject({ out });
  });

  it("is not asked while the node's agent answers", async () => {
    await startAgent(POD, explanation("u1"));
    const { out } = await plugin("explain", "pod", POD);
    expect(out).toMatch(
      /\nAnswered by the agent on node worker-1\.\nFor an earlier pod of this name, use --at TIME\.\n/,
    );
    expect(logs.queries).toEqual([]);
    const json = JSON.parse((await plugin("explain", "pod", POD, "-o", "json")).out);
    expect(json).toMatchObject({ uid: "u1", source: { kind: "agent", node: "worker-1" } });
  });

  it("answers if the agent does not, and says why", async () => {
    await startAgent("another", {});
    const { out } = await plugin("explain", "pod", POD);
    expect(out).toMatch(/\nAnswered by the archive /);
    expect(out).toMatch(/\nNo agent answered: no record of pod .* of which 1 did not answer: worker-1 /);
  });

  it("states gaps that the agent exported, and does not know then who deleted a pod", async () => {
    const { _time } = logs.rows.find(({ _msg }) => _msg!.includes('"by-hand"'))!;
    const at = Date.parse(_time!);
    const gap = { from: at - 5_000, to: at + 1_000, why: "the state directory could not be written" };
    logs.rows.push(
      rowLike("nodekeeper.mark", { event_name: "nodekeeper.gap", "nodekeeper.record.id": "gap" }, gap),
    );
    const { out } = await plugin("explain", "pod", "by-hand");
    expect(out).toMatch(/\nPod deleted at \S+Z; whether by Nodekeeper is not known: records are missing/);
    expect(out).toMatch(
      /\nRecords are missing between \S+Z and \S+Z: the state directory could not be written\.\n/,
    );
  });

  it("says that a pod has no end, and claims no eviction in progress", async () => {
    logs.rows = logs.rows.filter(
      ({ event_name, _msg }) => event_name !== "nodekeeper.pod.ended" && !_msg!.includes("pod deleted"),
    );
    const { out } = await plugin("explain", "pod", POD);
    expect(out).toMatch(/\nSelected at \S+Z \(round 1\); no outcome of its eviction is recorded/);
    expect(out).toMatch(/\nThe archive has no end of this pod\.\n/);
  });

  it("says of records that it can't read which and why, and reads the others", async () => {
    const broken = { ...rowLike("nodekeeper.eviction.step", { "nodekeeper.record.id": "r1" }), _msg: "{" };
    const newer = rowLike("nodekeeper.pod.ended", {
      ...{ "nodekeeper.record.id": "r2", "nodekeeper.schema.version": "2" },
    });
    const wrong = rowLike("nodekeeper.pod.ended", { "nodekeeper.record.id": "r3" }, { pod: {} });
    logs.rows.push(broken, newer, wrong);
    const { out } = await plugin("explain", "pod", POD);
    expect(out).toMatch(/\nEvicted at /);
    expect(out).toMatch(/\nrecord r1: its body is not JSON\.\n/);
    expect(out).toMatch(/\nrecord r2: schema version 2; this program reads version 1\.\n/);
    expect(out).toMatch(/\nrecord r3: its body is malformed: pod is missing or wrong\.\n/);
  });

  it.each<[string, (row: LogsRow) => Promise<string>, string]>([
    [
      "a record can't be read",
      async ({ _time = "" }) => {
        const changes = { "nodekeeper.record.id": "r1", "k8s.pod.uid": uidOf("by-hand"), _msg: "{", _time };
        logs.rows.push(rowLike("nodekeeper.eviction.decision", changes));
        return logs.url;
      },
      "records can't be read",
    ],
    [
      "a replica does not answer",
      async () => {
        const other = await start();
        other.refusal = { status: 503, text: "busy\n" };
        return `${logs.url},${other.url}`;
      },
      "a store of the archive did not answer",
    ],
  ])("does not conclude that nobody evicted a pod if %s", async (_, prepare, why) => {
    const urls = await prepare(logs.rows.find(({ _msg }) => _msg!.includes('"by-hand"'))!);
    const { out } = await pluginFrom(urls, "explain", "pod", "by-hand");
    expect(out).toMatch(/\nPod deleted at \S+Z; whether by Nodekeeper is not known: records are missing/);
    expect(out).toContain(`: ${why}.`);
    expect(out).not.toContain("not by Nodekeeper");
  });

  it("asks replicas for what another lost, and says which does not answer", async () => {
    const other = await start();
    logs.rows = logs.rows.filter(({ event_name }) => event_name !== "nodekeeper.pod.ended");
    other.rows = other.rows.filter(({ event_name }) => event_name !== "nodekeeper.eviction.decision");
    const urls = `${logs.url},${other.url}`;
    const { out } = await pluginFrom(urls, "explain", "pod", POD);
    expect(out).toMatch(/\nEvicted at .* Container main exited with code 143\.\n/);
    other.refusal = { status: 503, text: "busy\n" };
    const half = await pluginFrom(urls, "explain", "pod", POD);
    expect(half.out).toMatch(/\nEvicted at /);
    expect(half.out).toContain(`\narchive ${other.url}: HTTP 503: busy.\n`);
  });

  it("escapes what records contain", async () => {
    const row = logs.rows.find(({ _msg }) => _msg!.includes("POST eviction: accepted"))!;
    const step = { ...JSON.parse(row._msg!), message: "a\u001b[31m\nb" };
    logs.rows.push({ ...row, "nodekeeper.record.id": "r1", _msg: JSON.stringify(step) });
    const { out } = await plugin("explain", "pod", POD);
    expect(out).not.toContain("\u001b");
    expect(out).not.toMatch(/^b$/m);
  });
});

describe("the pod that is meant", () => {
  /** Adds a later pod of the same name. */
  function addLater(cluster = "prod"): string {
    const row = logs.rows.find(({ _msg }) => _msg!.includes('"by-hand"'))!;
    const later = new Date(Date.parse(row._time!) + 60_000);
    const body = JSON.parse(row._msg!);
    Object.assign(body.pod, { uid: "u2", seenAt: later.getTime() - 20_000, leftAt: later.getTime() });
    const changes = { "k8s.pod.uid": "u2", "nodekeeper.record.id": "r2", "k8s.cluster.name": cluster };
    logs.rows.push({ ...row, ...changes, _time: later.toISOString(), _msg: JSON.stringify(body) });
    return row._time!;
  }

  it("is the last of its name, or the one at a time", async () => {
    const first = addLater();
    expect((await plugin("explain", "pod", "by-hand")).out).toMatch(
      /^Pod default\/by-hand {2}\(u2\)\n(.|\n)*Other recorded pods of this name \(explain them by UID\): /,
    );
    const { out } = await plugin("explain", "pod", "by-hand", "--at", first);
    expect(out).toContain(`(${uidOf("by-hand")})`);
    expect(out).not.toContain("first seen");
    const after = new Date(Date.parse(first) + 1_000).toISOString();
    expect((await plugin("explain", "pod", "by-hand", "--at", after)).out).toMatch(
      /\nIt was first seen at \S+, after /,
    );
  });

  it("is one of a controller, also by the agent if its node is there", async () => {
    const { out } = await plugin("explain", "pod", "deployment/web");
    expect(out).toMatch(/^Pod default\/web-5d4f9c-abcde /);
    const uid = uidOf("web-5d4f9c-abcde");
    await startAgent(uid, explanation(uid));
    expect((await plugin("explain", "pod", "deploy/web")).out).toMatch(/\nAnswered by the agent on node/);
    const none = await plugin("explain", "pod", "statefulset/web");
    expect(none.stderr).toMatch(/NK1606: .* the pod of StatefulSet\/web in namespace default nor its end/);
  });

  it("is not that of one cluster or another", async () => {
    addLater("test");
    const { status, stderr } = await plugin("explain", "pod", "by-hand");
    expect(status).toBe(2);
    expect(stderr).toMatch(/in the clusters prod, test; choose one with --archive-attributes/);
    const node = await plugin("explain", "node", "worker-1");
    expect(node.stderr).toMatch(/has the node worker-1 in the clusters prod, test; choose one/);
    const both = await plugin("evictions", "--since", "99999h", "--by", "cluster");
    expect(both.out).toMatch(/^prod +1 +0 +0$/m);
    const chosen = ["--archive-attributes", "k8s.cluster.name=prod"];
    expect((await plugin("explain", "pod", "by-hand", ...chosen)).out).toContain(uidOf("by-hand"));
  });
});

it("explain node is that of the records, with what was not cleared", async () => {
  logs.rows = logs.rows.filter(({ _msg }) => !_msg!.includes('"cleared"'));
  const { out } = await plugin("explain", "node", "worker-1");
  expect(out).toMatch(/^Node worker-1\n\nCondition MemoryHot of the Node\n/);
  expect(out).toMatch(/\n {2}until +not cleared by the last record, of \S+Z\n/);
  expect(out).toMatch(/ agent \S+ started\n.* condition MemoryHot set: .*\n.* taint \S+ added: /);
  const other = await plugin("explain", "node", "worker-2");
  expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining("no record of node worker-2") });
});

describe("evictions", () => {
  const ago = () => `${Math.ceil((Date.now() - Date.parse(logs.rows[0]!._time!)) / 3_600_000) + 1}h`;

  it("are listed with their outcomes, and counted", async () => {
    logs.rows.push(...recordedRows());
    const { out } = await plugin("evictions", "--since", ago());
    expect(out).toMatch(/^\S+Z +worker-1 +default\/web-5d4f9c-abcde +Deployment\/web +pressure +evicted: /m);
    expect(out).toMatch(/\n1 pod selected since \S+ on 1 node: 1 evicted, 0 not evicted\.\n/);
    const counted = await plugin("evictions", "--since", ago(), "--by", "owner,plugin", "-o", "json");
    expect(JSON.parse(counted.out)).toMatchObject({
      groups: [{ values: ["default/Deployment/web", "pressure"], evicted: 1, notEvicted: 0, unknown: 0 }],
    });
    expect((await plugin("evictions", "-n", "other", "--since", ago())).out).toMatch(/^0 pods selected /);
    expect((await plugin("evictions", "-n", "other", "-A", "--since", ago())).out).toMatch(
      /\n1 pod selected /,
    );
  });

  it.each([
    [
      ["evictions", "--by", "owner,colour"],
      /--by: "colour" is none of owner, namespace, plugin, scope, node, cluster/,
    ],
    [["evictions", "--since", "soon"], /--since must be a duration/],
    [["explain", "pod", "web", "--at", "soon"], /--at must be a duration/],
    [["explain", "pod", "web", "--archive-attributes", "prod"], /expected NAME=VALUE; got "prod"/],
    [["explain", "pod", "web", "--archive", "ftp://x"], /NK1904: archive ftp:\/\/x: it must be http/],
    [["explain", "pod", "web", "--archive", "http://a:secret@x"], /archive http:\/\/x: .* without a user/],
  ])("%s is refused", async (args, message) => {
    const { status, stderr } = await pluginFrom(logs.url, ...args);
    expect([status, stderr]).toEqual([2, expect.stringMatching(message)]);
    expect(stderr).not.toContain("secret");
  });

  it("need an archive, as controllers and times do", async () => {
    for (const args of [
      ["evictions"],
      ["explain", "pod", "deploy/web"],
      ["explain", "pod", "web", "--at", "1h"],
    ])
      expect(await pluginAlone(...args)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining("--archive"),
      });
  });

  it.skipIf(!hasOpenssl)("are asked over TLS, with the authority of a file", async () => {
    const authority = makeAuthority(directory, "authority");
    const fake = await startFakeLogs(authority.issue("localhost", "DNS:localhost"));
    ends.push(() => fake.stop());
    const file = join(directory, "ca.crt");
    writeFileSync(file, authority.ca);
    const { out } = await pluginAlone("evictions", "--archive", fake.url, "--archive-ca", file);
    expect(out).toContain(`Answered by the archive ${fake.url}.`);
    const { stderr } = await pluginAlone("evictions", "--archive", fake.url);
    expect(stderr).toMatch(/NK1904: archive https:\S+: unable to verify/);
  });

  it("are asked with the headers of a file", async () => {
    const file = join(directory, "headers");
    writeFileSync(file, "Authorization: Bearer abc\n");
    await plugin("evictions", "--archive-headers", file);
    expect(logs.headers[0]).toMatchObject({ authorization: "Bearer abc" });
    const { stderr } = await plugin("evictions", "--archive-headers", `${file}x`);
    expect(stderr).toMatch(/NK1904: .*ENOENT/);
  });
});
