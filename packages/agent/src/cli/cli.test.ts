import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { age } from "@nodekeeper/api/wording";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { serveRoutes } from "../server/testing/serve-routes.ts";
import { runCli } from "./index.ts";
import { type Output, table } from "./output.ts";
import type { PluginRow } from "./plugin-row.ts";
import { runCommand } from "./testing/run-command.ts";

let directory: string;
const ends: (() => Promise<void> | void)[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-cli-"));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  rmSync(directory, { recursive: true });
});

const cli = (...args: string[]) => runCommand((output) => runCli(["node", "nodekeeper", ...args], output));

describe("nodekeeper", () => {
  it("prints its version as text and JSON", async () => {
    expect((await cli("version")).out).toMatch(/^nodekeeper \d+\.\d+\.\d+ \(node v\d+\./);
    expect(JSON.parse((await cli("version", "-o", "json")).out)).toMatchObject({ node: process.version });
  });

  it("prints help, and exits with 2 for wrong usage and 1 for failure", async () => {
    const help = await cli("--help");
    expect(help.status).toBe(0);
    for (const command of ["run", "dev", "plugins", "config", "preflight", "version"])
      expect(help.out).toContain(command);
    expect(await cli("nonsense")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/unknown command 'nonsense'/),
    });
    expect(await cli("version", "--frob")).toMatchObject({ status: 2 });
    expect(await cli("plugins", "list", "-o", "xml")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/table, wide, json/),
    });
  });

  it("prints a default configuration that validates", async () => {
    const file = join(directory, "config.yaml");
    writeFileSync(file, (await cli("config", "default")).out);
    expect(await cli("config", "validate", file)).toMatchObject({
      status: 0,
      out: expect.stringContaining("valid"),
    });
    const schema = JSON.parse((await cli("config", "schema")).out);
    expect(schema.properties.reporting.properties).toHaveProperty("collectInterval");
  });

  it("rejects an invalid configuration with every problem and its position", async () => {
    const file = join(directory, "config.yaml");
    writeFileSync(
      file,
      "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\nreporting:\n  colectInterval: 5s\n  callTimeout: never\n",
    );
    const { status, stderr } = await cli("config", "validate", file, "--kube-api-qps", "-3");
    expect(status).toBe(2);
    expect(stderr).toMatch(/config\.yaml:4.*reporting\.colectInterval.*collectInterval/);
    expect(stderr).toMatch(/reporting\.callTimeout.*never/);
    expect(stderr).toMatch(/--kube-api-qps/);
    expect(stderr).toMatch(/^nodekeeper: NK1001: /);
    expect(stderr).toMatch(/^ {2}Remedy: .*docs\/configuration\.md/m);
  });

  it("rejects unknown variables with a suggestion, in each command that reads variables", async () => {
    vi.stubEnv("NODEKEEPER_SERVR_ADDRESS", "127.0.0.1:1");
    try {
      for (const args of [["run"], ["preflight"], ["config", "validate"], ["status"], ["rounds"]]) {
        const { status, stderr } = await cli(...args);
        expect([args, status, stderr]).toEqual([
          args,
          2,
          expect.stringMatching(
            /^nodekeeper: NK1001: .*\n {2}env NODEKEEPER_SERVR_ADDRESS: unknown variable; did you mean NODEKEEPER_SERVER_ADDRESS\?\n/,
          ),
        ]);
      }
      expect(await cli("version")).toMatchObject({ status: 0 });
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it("uses the default address if the variable is empty", async () => {
    vi.stubEnv("NODEKEEPER_SERVER_ADDRESS", "");
    try {
      expect((await cli("status")).stderr).toContain("the agent at 127.0.0.1:10290 does not respond");
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it("preflight reports passed and failed checks", async () => {
    const server = createDevApiServer({
      clock: systemClock,
      log: silentLogger,
      rules: ({ verb, subresource }) => !(verb === "patch" && subresource === "status"),
    });
    await server.start();
    ends.push(() => server.stop());
    const kubeconfig = join(directory, "kubeconfig");
    await server.writeKubeconfig(kubeconfig);
    const flags = [
      "--kubeconfig",
      kubeconfig,
      "--state-dir",
      join(directory, "state"),
      "--plugin-directories",
      directory,
      "--runtime-endpoint",
      join(directory, "runtime.sock"),
    ];
    const { status, out } = await cli("preflight", "--node-name", "n1", ...flags);
    expect(status).toBe(1);
    expect(out).toMatch(/^ok +API server/m);
    expect(out).toMatch(
      /^ok +kind node\.katalyst\.kubewharf\.io\/v1alpha1\/CustomNodeResource +customnoderesources/m,
    );
    expect(out).toMatch(/^failed +permission patch customnoderesources\/status +denied.* \[NK1207\]$/m);
    expect(out).toMatch(/^ok +kernel/m);
    expect(out).toMatch(/^failed +container runtime +.*runtime\.sock.* \[NK1403\]$/m);
    const json = JSON.parse((await cli("preflight", "-o", "json", "--node-name", "n1", ...flags)).out);
    expect(json).toContainEqual(expect.objectContaining({ check: "permission patch nodes", verdict: "ok" }));
    const passed = json.filter(({ verdict }: { verdict: string }) => verdict === "ok");
    expect(passed.filter((finding: object) => "errorId" in finding)).toEqual([]);
    // Dry run is the default: it needs no permission to evict, and says how to switch eviction on.
    expect(json).toContainEqual(expect.objectContaining({ check: "permission list pods", verdict: "ok" }));
    expect(out).not.toMatch(/pods\/eviction/);
    expect(out).toMatch(
      /^ok +eviction +dry run: no pod is evicted, .*to evict, set eviction\.dryRunPlugins to \[\] /m,
    );
    const { out: live } = await cli(
      ...["preflight", "--node-name", "n1", ...flags, "--eviction-dry-run-plugins="],
    );
    expect(live).toMatch(/^ok +permission create pods\/eviction/m);
    expect(live).toMatch(/^ok +eviction +live: pods are evicted$/m);

    // Permissions that only some settings need are checked only with these settings.
    const socket = ["--reporting-kubelet-pod-resources-socket", join(directory, "kubelet.sock")];
    const set = [
      ...socket,
      "--eviction-dry-run-plugins",
      "-memory",
      "--eviction-killer",
      "deletion",
      "--eviction-policies-files",
      "/no/policies.yaml",
    ];
    const { out: more } = await cli("preflight", "--node-name", "n1", ...flags, ...set);
    expect(more).toMatch(/^warning +kubelet PodResources +.*kubelet\.sock does not exist/m);
    expect(more).toMatch(/^failed +eviction policies +\/no\/policies\.yaml does not exist/m);
    expect(more).toMatch(/^ok +permission delete pods/m);
    expect(more).not.toMatch(/tokenreviews/);
    const off = ["--eviction", "false", "--reporting-in-tree-plugins", "system-reporter-plugin"];
    const { out: less } = await cli("preflight", "--node-name", "n1", ...flags, ...off);
    expect(less).not.toMatch(/permission .* pods|PodResources/);
    expect(less).toMatch(/^ok +eviction +off$/m);
  });

  it("lists plugins of a running agent", async () => {
    const rows: PluginRow[] = [
      row({ name: "good", state: "registered", contentBytes: 12, contentAt: Date.now() - 3.5 * 3_600_000 }),
      row({ name: "bad", state: "refused", error: "name is taken", errorId: "NK1303" }),
      row({ name: "sloppy", state: "registered", problems: ["field x", "field y"] }),
    ];
    const address = await serve(rows);
    const { out, status } = await cli("plugins", "list", "--server", address);
    expect(status).toBe(0);
    const lines = out.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^NAME +TYPE +STATE +SINCE +CONTENT +CHANGED +MESSAGE$/);
    expect(lines[1]).toMatch(/^good +ReporterPlugin +registered .* 12 B +3h +-$/);
    expect(lines[2]).toMatch(/^bad .*refused .*NK1303: name is taken$/);
    expect(lines[3]).toMatch(/field x \(and 1 more\)$/);
    expect(JSON.parse((await cli("plugins", "list", "-o", "json", "--server", address)).out)).toHaveLength(3);
  });

  it("lists the first problems of drivers with ID, time and place, and all as JSON", async () => {
    const driverProblems = Array.from({ length: 7 }, (_, at) => ({
      ...{
        errorId: "NK1507",
        claimUid: `uid-${at}`,
        pool: "n1",
        device: "gpu-0",
        message: "no edits\u001b[2J",
      },
      since: Date.now() - 3.5 * 60_000,
    }));
    const address = await serve([
      row({ name: "gpu", type: "DRAPlugin", problems: ["NK1507: claim uid-0: no edits"], driverProblems }),
      row({ name: "good" }),
    ]);
    const { out } = await cli("plugins", "list", "--server", address);
    const lines = out.trimEnd().split("\n");
    expect(lines.slice(3, 6)).toEqual([
      "",
      "PROBLEMS OF gpu: 7",
      expect.stringMatching(/^ID +SINCE +WHERE +MESSAGE$/),
    ]);
    expect(lines[6]).toMatch(/^NK1507 +3m +claim uid-0, device gpu-0 +no edits\\u001b\[2J$/);
    expect(lines.slice(11)).toEqual(["and 2 more: nodekeeper plugins list -o json"]);
    const [gpu] = JSON.parse((await cli("plugins", "list", "-o", "json", "--server", address)).out);
    expect(gpu.driverProblems).toEqual(driverProblems);
  });

  it("names the address when no agent responds", async () => {
    const { status, stderr } = await cli("plugins", "list", "--server", "127.0.0.1:1");
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^nodekeeper: NK1710: the agent at 127\.0\.0\.1:1 does not respond .*--server.*\n {2}Cause: .+\n {2}Remedy: .+\n$/,
    );
  });
});

describe("a server that is no agent", () => {
  it("is named where it answers something else", async () => {
    const server = createServer((_, response) => response.end("<html>"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ends.push(() => void server.close());
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { status, stderr } = await cli("plugins", "list", "--server", address);
    expect(status).toBe(1);
    expect(stderr).toContain(
      `NK1710: the response of the agent at ${address} is not JSON, so it is not a Nodekeeper agent (<html>)`,
    );
  });
});

describe("output", () => {
  it.each([
    [-5, "0s"],
    [1_400, "1s"],
    [119_000, "119s"],
    [120_000, "2m"],
    [7_200_000, "2h"],
    [172_800_000, "2d"],
  ])("prints an age of %i ms as %s", (ms, text) => expect(age(ms)).toBe(text));

  it("aligns columns, and colours only on a terminal", () => {
    const output: Output = { write: () => {}, isTerminal: false, columns: 80 };
    expect(table(output, ["A", "LONG"], [["value", "x"]], () => "red")).toBe("A       LONG\nvalue   x\n");
  });
});

function row(given: Partial<PluginRow>): PluginRow {
  return {
    name: "",
    type: "ReporterPlugin",
    state: "registered",
    endpoint: undefined,
    registrationSocket: "/x.sock",
    versions: [],
    since: Date.now(),
    attempts: 1,
    contentAt: undefined,
    contentBytes: 0,
    problems: [],
    error: undefined,
    errorId: undefined,
    ...given,
  };
}

async function serve(rows: PluginRow[]): Promise<string> {
  const { address, stop } = await serveRoutes([{ path: "plugins", summary: "plugins", handle: () => rows }]);
  ends.push(stop);
  return address;
}
