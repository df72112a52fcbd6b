import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { runCommand } from "../packages/agent/src/cli/testing/run-command.ts";
import { serveTestDriver } from "../packages/agent/src/conformance/testing/test-driver.ts";
import { root } from "../scripts/programs.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkc-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const conformance = (...args: string[]) =>
  runCommand((output) => runCli(["node", "nodekeeper", "conformance", "driver", directory, ...args], output));
const sample = (...args: string[]) =>
  [process.execPath, join(root, "examples/driver/main.ts"), "--socket-dir", directory, ...args].join(" ");
const breaking = (breach: string) =>
  `${process.execPath} ${join(root, "packages/agent/src/conformance/testing/run-driver.ts")} ${directory} '${breach}'`;

interface Report {
  failed: number;
  checks: { rule: string; result: string; message: string }[];
}

const namesOf = ({ checks }: Report, wanted: string) =>
  checks.filter(({ result }) => result === wanted).map(({ rule }) => rule);

it("the sample driver keeps the contract, while the health of its devices changes", async () => {
  const command = sample("--count", "4", "--interval", "200ms");
  const { status, out, stderr } = await conformance("--command", command, "-o", "json");
  const report: Report = JSON.parse(out);
  expect([stderr, report.checks.filter(({ result }) => result === "fail")]).toEqual(["", []]);
  // It has no status to report.
  expect(namesOf(report, "skip")).toEqual(["allocations", "status"]);
  expect(status).toBe(0);
  expect(readdirSync(directory)).toEqual([]);
});

it("prints a line for each check, with the contract and where it is defined", async () => {
  const { out } = await conformance("--command", sample(), "--no-prepare");
  const lines = out.trimEnd().split("\n");
  expect(lines.find((line) => line.includes("driver-name"))).toMatch(
    /^pass {2}driver-name +\d+ ms {2}the name is a DNS subdomain .* \[pluginregistration\/v1\/api\.proto, PluginInfo\.name\]$/,
  );
  expect(lines.find((line) => line.includes("prepare-again"))).toMatch(/^skip .* needs answer\. Contract: /);
  expect(lines.at(-1)).toMatch(/^\d+ checks: \d+ passed, 0 failed, \d+ skipped$/);
});

describe("names the broken rule of a process", () => {
  it.each([
    ["restart", "another name"],
    ["restart-claims", "forgotten claims"],
    ["clean-end", "socket left"],
    ["clean-end", "no end"],
  ])("%s: %s", async (rule, breach) => {
    const { status, out } = await conformance("--command", breaking(breach), "-o", "json");
    expect([namesOf(JSON.parse(out), "fail"), status]).toEqual([[rule], 1]);
  });
});

describe("a driver that another program runs", () => {
  let server: Awaited<ReturnType<typeof serveTestDriver>>;
  beforeEach(async () => {
    server = await serveTestDriver(join(directory, "driver.sock"), {});
  });
  afterEach(() => server.forceShutdown());

  it.each([
    [
      "restarts",
      "true && true",
      [],
      ["feedback", "allocations", "restore-claims", "unprepare-refused", "clean-end"],
      0,
    ],
    [
      "can't be restarted",
      "echo no such unit >&2; false",
      ["restart"],
      ["feedback", "allocations", "restore-claims", "unprepare-refused", "restart-claims", "clean-end"],
      1,
    ],
  ])("%s", async (_, command, failed, skipped, status) => {
    const result = await conformance("--restart-command", command, "--calls", "1", "-o", "json");
    const report: Report = JSON.parse(result.out);
    expect([namesOf(report, "fail"), namesOf(report, "skip"), result.status]).toEqual([
      failed,
      skipped,
      status,
    ]);
    if (status === 1) expect(result.out).toContain("ended with 1: no such unit");
  });

  it("is not started twice", async () => {
    const { status, stderr } = await conformance("--command", sample());
    expect([status, stderr]).toEqual([2, expect.stringContaining("a process already listens")]);
  });
});

it("prints a driver's hostile texts escaped, each in its line", async () => {
  const evil = "evil\npass  prepare\u001b[2J";
  const server = await serveTestDriver(join(directory, "driver.sock"), {
    async prepare() {
      throw new ServerError(Status.INTERNAL, evil);
    },
  });
  try {
    const { out, status } = await conformance();
    const lines = out.trimEnd().split("\n");
    expect(
      lines.filter((line) => !/^(pass|fail|skip) {2}[a-z-]+ +\d+ ms {2}|^$|^\d+ checks: /.test(line)),
    ).toEqual([]);
    expect(out).not.toContain("\u001b");
    expect(out).toMatch(/^fail {2}prepare .*evil/m);
    expect(lines.filter((line) => /^(pass|fail|skip) {2}prepare /.test(line))).toHaveLength(1);
    expect(status).toBe(1);
  } finally {
    server.forceShutdown();
  }
});

it.each([
  ["no driver", [], /no process listens on a socket at/],
  [
    "a process that ends",
    ["--command", "sh -c 'echo out of devices; exit 3'"],
    /ended with 3.*out of devices/s,
  ],
  ["configuration that is no object", ["--configuration", "[]"], /--configuration must be a JSON object/],
  ["no number of calls", ["--calls", "0"], /--calls must be a whole number/],
])("%s is invalid usage", async (_, args, message) => {
  const { status, stderr } = await conformance(...args);
  expect([status, stderr]).toEqual([2, expect.stringMatching(message)]);
});
