import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { plainText } from "@nodekeeper/api/text";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { liveEvictionPolicy } from "../../assembly/testing/defaults.ts";
import { evictPod, type TestPlugin, TestRounds, testPod } from "../../eviction/testing/rounds.ts";
import { type ServedRecords, serveRecords } from "../../server/testing/serve-records.ts";
import { runCli } from "../index.ts";
import { runCommand } from "../testing/run-command.ts";

// The commands against the routes over HTTP, on real records in SQLite.
let served: ServedRecords;
let address: string;

beforeEach(async () => {
  served = await serveRecords();
  ({ address } = served);
});

afterEach(() => served.stop());

const cli = (...args: string[]) => runCommand((output) => runCli(["node", "nodekeeper", ...args], output));

const ask = (...args: string[]) => cli(...args, "--server", address);

/** Plays a round ten seconds ago and records it, with the steps since the previous round. */
function play(rounds: TestRounds, plugins: Record<string, TestPlugin>, steps: [string, string][] = []): void {
  rounds.now = Date.now() - 10_000;
  served.play(rounds, plugins, steps);
}

const hard: TestPlugin = {
  threshold: { metType: "hard", observedValue: 0.97, thresholdValue: 0.8, scope: "memory" },
  top: ["web"],
};

/** A pod that was evicted and deleted, one that was not evicted, and a critical one. */
function playEviction(): void {
  const rounds = new TestRounds([
    testPod("web", { gracePeriodSeconds: 5 }),
    testPod("db", { priority: 10 }),
    testPod("critical", { priority: 2_000_000_000 }),
  ]);
  play(rounds, { pressure: hard, greedy: { pods: [evictPod("critical", { force: true })] } });
  rounds.remove("web");
  const times = { acceptedAt: rounds.now, endedAt: rounds.now + 300 };
  rounds.outcomes = [{ uid: "web", result: "terminated", ...times, message: "pod deleted" }];
  play(rounds, {}, [
    ["web", "POST eviction: accepted"],
    ["web", "container app exited with code 143"],
    ["web", "pod deleted"],
  ]);
}

describe("help", () => {
  it.each([
    [
      ["explain", "pod"],
      ["<pod>", "--server", "--namespace", "--output"],
    ],
    [["rounds"], ["--since", "--follow", "--records", "--server", "--output"]],
    [["replay"], ["--config", "--since", "--records", "--server", "--output"]],
  ])("of %j names its options", async (command, options) => {
    const { status, out } = await cli(...command, "--help");
    expect(status).toBe(0);
    for (const option of options) expect(out).toContain(option);
    expect(await cli(...command, "--nonsense")).toMatchObject({ status: 2 });
  });
});

describe("explain pod", () => {
  it("explains an evicted pod: the reason, the steps, and the ranking", async () => {
    playEviction();
    const { out, status } = await ask("explain", "pod", "default/web");
    expect(status).toBe(0);
    expect(out).toMatch(
      /^Pod default\/web {2}\(web\)\nshared_cores, BestEffort, priority 0, grace period 5 s\n\nEvicted at .* \(round 1\), pod deleted after .*: requested by pressure: memory 0\.97 > threshold 0\.8\.\n/,
    );
    expect(out).toContain("met        pressure (hard): memory 0.97 > threshold 0.8, for 0s; named 1 pod\n");
    expect(out).toMatch(/container app exited with code 143\n/);
    expect(out).toMatch(/ended {6}evicted: pod deleted/);
    expect(out).not.toContain("default/critical");
  });

  it.each([
    [
      "refused",
      "default/critical",
      /Not evicted: greedy requested it, but pods with a critical priority .*\(priority 2000000000\)/,
    ],
    ["by UID", "critical", /Not evicted: greedy requested it/],
    ["not requested", "default/db", /Not evicted: no plugin requested it/i],
  ])("explains why a pod is not evicted: %s", async (_name, pod, expected) => {
    playEviction();
    expect((await ask("explain", "pod", pod)).out).toMatch(expected);
  });

  it("gives everything as JSON", async () => {
    playEviction();
    const { out } = await ask("explain", "pod", "default/web", "-o", "json");
    expect(JSON.parse(out)).toMatchObject({
      name: "web",
      rounds: [{ victim: { plugin: "pressure" } }, { outcome: { result: "terminated" } }],
    });
  });

  it("reports that there is no record", async () => {
    expect(await ask("explain", "pod", "default/absent")).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /^nodekeeper: NK1606: no record of the pod default\/absent on this node; the records go back to 20.*Z\n {2}Cause: .+\n {2}Remedy: .+\n$/,
      ),
    });
    playEviction();
    expect((await ask("explain", "pod", "default/absent")).stderr).toMatch(
      /^nodekeeper: NK1606: no record of the pod .*; the records go back to 20.*Z\n/,
    );
    expect((await ask("explain", "pod", "absent")).stderr).toContain(
      "no record of the pod default/absent on",
    );
    expect((await ask("explain", "pod", "absent", "-n", "team-a")).stderr).toContain(
      "the pod team-a/absent on",
    );
    expect(await ask("explain", "pod", "x".repeat(700))).toMatchObject({ status: 2 });
  });

  it("does nothing to the terminal that a plugin wants", async () => {
    const rounds = new TestRounds([testPod("web")]);
    const reason = "\u001b]0;owned\u0007\u001b[2J\nEvicted at never\u202e";
    play(rounds, { evil: { pods: [evictPod("web", { force: true, reason })] } });
    const { out } = await ask("explain", "pod", "default/web");
    for (const character of ["\u001b", "\u0007", "\u202e"]) expect(out).not.toContain(character);
    expect(out).not.toMatch(/^Evicted at never/m);
    expect(plainText("a".repeat(1_000))).toHaveLength(300);
  });
});

describe("rounds", () => {
  it("claims that there is none only since the records begin", async () => {
    const { out, stderr } = await ask("rounds");
    const [, begin] = /^nodekeeper: No records before (\S+) are kept\.$/m.exec(stderr) ?? [];
    expect(out).toBe(`No recorded rounds since ${begin}.\n`);
  });

  it("lists each in a line, and reports when there is none", async () => {
    expect((await ask("rounds")).out).toMatch(/^No recorded rounds since .*\.\n$/);
    playEviction();
    const lines = (await ask("rounds")).out.split("\n");
    expect(lines[0]).toMatch(
      /round 1 {2}2 of 3 pods are candidates; met: pressure \(hard\): memory 0\.97 > threshold 0\.8; evicts: default\/web; not evicted: 1 \(critical priority\)$/,
    );
    expect(lines[1]).toMatch(/round 2 .*; default\/web evicted: pod deleted$/);
    expect((await ask("rounds", "--since", "5s")).out).toMatch(/^No recorded rounds/);
    const [first] = (await ask("rounds", "-o", "json")).out.split("\n");
    expect(JSON.parse(first!)).toMatchObject({ id: 1, victims: [{ name: "web" }] });
  });

  it("refuses bad queries", async () => {
    expect(await ask("rounds", "--since", "yesterday")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--since must be a duration such as "90s" or "24h"; got "yesterday"'),
    });
    expect(await ask("rounds", "--since", "-5m")).toMatchObject({ status: 2 });
    expect(await ask("rounds", "--records", "--follow")).toMatchObject({ status: 2 });
    expect(await cli("rounds", "--server", "127.0.0.1:1")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("agent at 127.0.0.1:1 does not respond"),
    });
    expect(await cli("rounds", "--follow", "--server", "127.0.0.1:1")).toMatchObject({ status: 1 });
    const { status } = await fetch(`http://${address}/api/v1/eviction/rounds?since=-1`);
    expect(status).toBe(400);
    expect((await fetch(`http://${address}/api/v1/eviction/explain`)).status).toBe(400);
  });
});

describe("replay", () => {
  const candidate = (text: string) => {
    const file = join(served.directory, "candidate.yaml");
    writeFileSync(file, `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n${text}`);
    return file;
  };

  it("shows which pods would not have been evicted, and which would have been instead", async () => {
    const nodePods = [testPod("web", { labels: { "example.com/keep": "" } }), testPod("db")];
    const rounds = new TestRounds(nodePods, liveEvictionPolicy);
    play(rounds, { soft: { pods: [evictPod("web"), evictPod("db")] } });
    expect((await ask("rounds")).out).toContain("evicts: default/db");
    const keep = candidate("eviction:\n  dryRunPlugins: [soft]\n");
    expect((await ask("replay", "--config", keep)).out).toMatch(
      /^The policy differs from the one in the last replayed round:\n {2}dryRunPlugins \["soft"\] instead of \[\]\n\n1 round since .* replayed: 1 victim recorded, 0 with this policy\.\nIn dry run, not evicted: 0 victims recorded, 1 with this policy\.\n1 round differs\. .*\n\nRound 1 at .*\n {2}- evicted {2}default\/db: the plugin is in dry run\n/,
    );
    const same = candidate("eviction:\n  burst: 5\n  dryRunPlugins: []\n");
    expect(await ask("replay", "--config", same)).toMatchObject({
      out: expect.stringContaining("No round differs."),
      stderr: expect.stringMatching(/^nodekeeper: No records before \S+Z are kept\.\n$/),
    });
    expect(await ask("replay", "--config", candidate("eviction:\n  burst: 5\n"))).toMatchObject({
      out: expect.stringContaining("- evicted  default/db: the plugin is in dry run"),
      stderr: expect.stringContaining(
        "warning: eviction.dryRunPlugins is not set in this configuration, and its default evicts no pod; to compare evictions, set it to [] as",
      ),
    });
  });

  it("reads a file that rounds --records wrote, without an agent", async () => {
    playEviction();
    const file = join(served.directory, "records.jsonl");
    writeFileSync(file, (await ask("rounds", "--records")).out);
    const config = candidate("eviction:\n  dryRunPlugins: ['*']\n");
    const { out } = await cli("replay", "--config", config, "--from", file, "-o", "json");
    expect(JSON.parse(out)).toMatchObject({ rounds: 2, victimsBefore: 1, victimsAfter: 0 });
    writeFileSync(file, "{}\n");
    expect(await cli("replay", "--config", config, "--from", file)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("line 1: not a recorded round"),
    });
    expect(await cli("replay", "--config", config, "--from", join(served.directory, "none"))).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("no such file"),
    });
    writeFileSync(file, "nonsense\n");
    expect((await cli("replay", "--config", config, "--from", file)).stderr).toContain("line 1: not JSON");
    const whole = { plugins: [], tops: [], outcomes: [] };
    const broken = { id: 7, input: { now: 1, pods: [null], ...whole }, decision: { victims: [] } };
    writeFileSync(file, `\n${JSON.stringify(broken)}\n`);
    expect(await cli("replay", "--config", config, "--from", file)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("round 7 is incomplete or malformed"),
    });
  });

  it("takes all of a file without --since", async () => {
    playEviction();
    const file = join(served.directory, "records.jsonl");
    writeFileSync(file, (await ask("rounds", "--records")).out);
    const args = ["replay", "--config", candidate("eviction:\n  dryRunPlugins: []\n"), "--from", file];
    expect((await cli(...args)).out).toMatch(
      /^2 rounds replayed: 1 victim recorded, 1 with this policy\.\n/m,
    );
    expect((await cli(...args, "--since", "5s")).out).toMatch(
      /^No recorded round since .*: nothing to replay\.\n$/,
    );
    writeFileSync(file, "");
    expect((await cli(...args)).out).toBe("No recorded round: nothing to replay.\n");
    expect((await ask("replay", "--config", candidate(""), "--since", "5s")).out).toMatch(
      /^No recorded round since/,
    );
  });

  it("refuses a wrong configuration as the agent would", async () => {
    const file = candidate("eviction:\n  burst: many\n");
    expect(await ask("replay", "--config", file)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("eviction.burst"),
    });
  });
});
