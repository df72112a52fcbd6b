import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decide } from "@nodekeeper/api/decide";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestRounds, testPod } from "../eviction/testing/rounds.ts";
import { runCli } from "./index.ts";
import type { PolicyTest } from "./policy.ts";
import { runCommand } from "./testing/run-command.ts";

const policies = `policies:
  - name: memory
    type: hard
    observed: node.memory.available
    operator: lessThan
    threshold: quantity("100Mi")
    minimumReclaim: quantity("50Mi")
    gracePeriod: 30s
    pods: pod.namespace != "kube-system"
    rank: [-pod.priority, pod.usage.rss]
`;
const node = `node: { memory: { available: 90Mi } }
pods:
  - { name: web, priority: 5, usage: { rss: 2Gi } }
  - { name: job, usage: { rss: 1Gi } }
  - { name: new }
  - { name: dns, namespace: kube-system }
`;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkt-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const test = (...args: string[]) =>
  runCommand((output) => runCli(["node", "nodekeeper", "policy", "test", ...args], output));

/** Three rounds in which no plugin requests an eviction, each with one more pod. */
function recordsFile(): string {
  const lines = [1, 2, 3].map((id) => {
    const rounds = new TestRounds(Array.from({ length: id }, (_, at) => testPod(`p${at}`, { priority: at })));
    const input = rounds.input({});
    return JSON.stringify({ id, input, decision: decide(input) });
  });
  return file("rounds.jsonl", `${lines.join("\n")}\n`);
}

describe("against a described node", () => {
  it("prints thresholds met, the eviction order, and why the other pods are excluded", async () => {
    const { status, out } = await test(file("p.yaml", policies), "--against", file("node.yaml", node));
    expect(status).toBe(0);
    expect(out).toBe(`memory (hard): met: 94371840 < 104857600; evicts after 30s
  ORDER   POD           -pod.priority   pod.usage.rss
  1       default/job   0               1073741824
  2       default/web   -5              2147483648
  STAYS             WHY
  default/new       pod.usage.rss is not known
  kube-system/dns   excluded by the filter
`);
  });

  it("prints missing readings, and evicts no pod because of them", async () => {
    const { out } = await test(file("p.yaml", policies), "--against", file("node.yaml", "pods: []"));
    expect(out).toBe(`memory (hard): unknown, evicts no pod
  node.memory.available: not set in the file
  no pod can be evicted
`);
  });

  it("keeps a threshold met until minimumReclaim is reached", async () => {
    const between = file("node.yaml", "node: { memory: { available: 120Mi } }");
    const before = await test(file("p.yaml", policies), "--against", between, "--under-pressure");
    expect(before.out).toContain("met, kept by minimumReclaim: 125829120 not < 104857600");
    const { out } = await test(file("p.yaml", policies), "--against", between);
    expect(out).toContain("memory (hard): not met: 125829120 not < 104857600\n");
  });

  it("prints all of it as JSON", async () => {
    const args = ["--against", file("node.yaml", node), "-o", "json"];
    const { out } = await test(file("p.yaml", policies), ...args);
    const found = JSON.parse(out) as PolicyTest;
    expect(found).toMatchObject({
      problems: [],
      scenes: [{ round: null, policies: [{ policy: "memory", state: "met", threshold: 104857600 }] }],
    });
    expect(found.scenes[0]!.policies[0]!.ranking.map(({ name }) => name)).toEqual(["job", "web"]);
    expect(found.scenes[0]!.policies[0]!.excluded.map(({ kind }) => kind)).toEqual(["unknown", "filtered"]);
  });
});

it("reports an invalid policy with its position, evaluates the others, and exits with 1", async () => {
  const wrong = `${policies}  - { name: bad, type: soft, when: node.memory.avail > 1, rank: [1] }\n`;
  const path = file("p.yaml", wrong);
  const { status, out } = await test(path, "--against", file("node.yaml", node));
  expect(status).toBe(1);
  expect(out).toContain(
    `refused: ${path}:11:48: policy "bad": when: there is no node.memory.avail; its fields are: total,`,
  );
  expect(out).toContain("memory (hard): met");
});

describe("against recorded rounds", () => {
  it("evaluates the last one, with readings from a file", async () => {
    const readings = file(
      "node.yaml",
      "node: { memory: { available: 1Mi } }\npods: [{ name: p1, usage: { rss: 5 } }]",
    );
    const args = ["--against", recordsFile(), "--readings", readings];
    const { status, out } = await test(file("p.yaml", policies), ...args);
    expect(status).toBe(0);
    expect(out).toMatch(/^Round 3 at 1970-/);
    expect(out).toContain("memory (hard): met: 1048576 < 104857600");
    expect(out).toContain("  1       default/p1   -1              5\n");
    expect(out).toContain("  default/p2   pod.usage.rss is not known\n");
  });

  it("evaluates several, or a given one", async () => {
    const rank = policies.replace(", pod.usage.rss", "");
    const of = async (...args: string[]) => {
      const { out } = await test(file("p.yaml", rank), "--against", recordsFile(), "-o", "json", ...args);
      return (JSON.parse(out) as PolicyTest).scenes.map(({ round, policies: [trial] }) => [
        round,
        trial!.state,
        trial!.ranking.map(({ name }) => name),
      ]);
    };
    expect(await of("--last", "2")).toEqual([
      [2, "unknown", ["p0", "p1"]],
      [3, "unknown", ["p0", "p1", "p2"]],
    ]);
    expect(await of("--round", "1")).toEqual([[1, "unknown", ["p0"]]]);
  });
});

describe("wrong usage is reported", () => {
  it.each([
    [["--against", "none.yaml"], 2, "none.yaml: ENOENT: no such file"],
    [["--against", "node.yaml", "--round", "5"], 2, "need recorded rounds, but "],
    [["--against", "rounds.jsonl", "--round", "9"], 1, "does not contain round 9"],
    [
      ["--against", "rounds.jsonl", "--last", "many"],
      2,
      '--last must be a whole number of at least 1; got "many"',
    ],
    [["--against", "broken.jsonl"], 2, "broken.jsonl, line 1: not a recorded round"],
    [["--against", "broken.yaml"], 2, "broken.yaml:1:9: "],
    [["--against", "node.yaml", "-o", "xml"], 2, "Allowed choices are text, json, yaml"],
    [[], 2, "required option '--against <file>' not specified"],
  ])("%j", async (args, status, message) => {
    recordsFile();
    file("node.yaml", node);
    file("broken.yaml", "nodes: [");
    file("broken.jsonl", '{"id":1,"input":{}}\n');
    const paths = args.map((arg) => (/\.(yaml|jsonl)$/.test(arg) ? join(directory, arg) : arg));
    const found = await test(file("p.yaml", policies), ...paths);
    expect(found.stderr).toContain(message);
    expect(found.status).toBe(status);
  });
});
