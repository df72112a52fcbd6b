import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createEvictionMetrics, EvictionPlugins, type EvictionSource } from "../eviction/index.ts";
import { PolicyFiles } from "./policy-files.ts";

let directory: string;
let files: string[];
let enabled: string[];
let created: string[];
let closed: string[];
let plugins: EvictionPlugins;
let policies: PolicyFiles;

const policy = (name: string, when = "node.cpu.usage > 0.9") =>
  `  - {name: ${name}, type: hard, when: ${when}, rank: [-pod.priority]}\n`;

function write(file: string, ...list: string[]): string {
  const path = join(directory, file);
  writeFileSync(path, `policies:\n${list.join("")}`);
  return path;
}

beforeEach(() => {
  enabled = ["*"];
  created = [];
  closed = [];
  directory = mkdtempSync(join(tmpdir(), "nk-policies-"));
  const common = { clock: new FakeClock(), log: silentLogger };
  plugins = new EvictionPlugins({
    inTree: [],
    settings: () => ({ callTimeout: 30_000, syncPeriod: 1_000 }),
    tokenCheck: () => undefined,
    metrics: createEvictionMetrics(new Registry()),
    ...common,
  });
  policies = new PolicyFiles({
    files: () => files,
    enabled: () => enabled,
    plugins,
    sourceOf: ({ name }) => {
      const source = { name: `policy-${name}`, close: () => void closed.push(source.name) };
      created.push(source.name);
      return source as Partial<EvictionSource> as EvictionSource;
    },
    ...common,
  });
});

afterEach(() => rmSync(directory, { recursive: true }));

const problem = () => {
  const result = policies.healthCheck().check() as { ok: boolean; message: string };
  return result.ok ? undefined : result.message;
};

it("asks for each policy, follows changes, and lets go of files that are no longer named", async () => {
  files = [write("a.yaml", policy("one"), policy("two")), write("b.yaml", policy("three"))];
  expect(problem()).toMatch(/not loaded yet/);
  await policies.check();
  expect(plugins.names).toEqual(["policy-one", "policy-three", "policy-two"]);
  expect(problem()).toBeUndefined();
  write("a.yaml", policy("one"), policy("renamed"));
  await policies.check();
  expect(plugins.names).toEqual(["policy-one", "policy-renamed", "policy-three"]);
  expect(closed).toContain("policy-two");
  files = files.slice(1);
  await policies.check();
  expect(plugins.names).toEqual(["policy-three"]);
});

it("refuses a wrong policy with its place, and keeps what a file had that changes for the worse", async () => {
  files = [write("a.yaml", policy("good"), policy("bad", "node.cpu.usage > wrong"))];
  await policies.check();
  expect(plugins.names).toEqual(["policy-good"]);
  expect(problem()).toMatch(/a\.yaml:3:\d+: policy "bad": when: .*wrong/);
  write("a.yaml", policy("good"), policy("better"));
  await policies.check();
  expect(plugins.names).toEqual(["policy-better", "policy-good"]);
  expect(problem()).toBeUndefined();
  write("a.yaml", policy("good"), policy("better", "nonsense("));
  await policies.check();
  expect(plugins.names).toEqual(["policy-better", "policy-good"]);
  expect(problem()).toMatch(/nonsense|when/);
  rmSync(files[0]!);
  await policies.check();
  expect(plugins.names).toEqual(["policy-better", "policy-good"]);
  expect(problem()).toMatch(/no such file/);
});

it("reports two policies of one name, and of a file that is not there, and runs the rest", async () => {
  files = [
    write("a.yaml", policy("one")),
    write("b.yaml", policy("one"), policy("two")),
    join(directory, "none"),
  ];
  await policies.check();
  expect(plugins.names).toEqual(["policy-one", "policy-two"]);
  expect(problem()).toMatch(/another file has a policy one/);
  expect(problem()).toMatch(/no such file/);
});

it("keeps the plugins of unchanged policies, also while another is refused", async () => {
  files = [write("a.yaml", policy("one"), policy("bad", "node.cpu.usage > wrong"))];
  for (let check = 0; check < 3; check++) await policies.check();
  expect([created, closed]).toEqual([["policy-one"], []]);
  files = [...files, write("b.yaml", policy("two"), policy("three"))];
  enabled = ["*", "-three"];
  await policies.check();
  enabled = ["*"];
  await policies.check();
  write("b.yaml", policy("two"));
  await policies.check();
  expect(created).toEqual(["policy-one", "policy-two", "policy-three", "policy-two"]);
  expect(closed).toEqual(["policy-two", "policy-three"]);
  expect(plugins.names).toEqual(["policy-one", "policy-two"]);
});

it("retries while another plugin has the name of a policy", async () => {
  const other = { name: "policy-one" } as EvictionSource;
  plugins.replaceInTree([], [other]);
  files = [write("a.yaml", policy("one"))];
  await policies.check();
  expect(problem()).toMatch(/another eviction plugin/);
  plugins.replaceInTree(["policy-one"], []);
  await policies.check();
  expect(problem()).toBeUndefined();
  expect(plugins.names).toEqual(["policy-one"]);
});

it("runs those that are enabled by name", async () => {
  files = [write("a.yaml", policy("one"), policy("two"), policy("three"))];
  enabled = ["*", "-two", "-unknown"];
  await policies.check();
  expect(plugins.names).toEqual(["policy-one", "policy-three"]);
  expect(problem()).toBeUndefined();
  enabled = ["two"];
  await policies.check();
  expect(plugins.names).toEqual(["policy-two"]);
});

it("is ready once the files were checked, valid or not", async () => {
  files = [write("a.yaml", policy("one")), join(directory, "none")];
  const controller = new AbortController();
  const running = policies.run(controller.signal);
  await policies.ready();
  expect(plugins.names).toEqual(["policy-one"]);
  controller.abort();
  await running;
});
