import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { parseEnv, promisify } from "node:util";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentEnvironment } from "../../packages/agent/src/launch.ts";
import { blocksOf, type DocShell, prepareShell, runBlock } from "../support/doc-blocks.ts";
import type { Child } from "./support/child.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { freePort } from "./support/free-port.ts";
import { writeKubeconfig } from "./support/kubeconfig.ts";
import { serviceAccount } from "./support/nodekeeper-install.ts";
import { missingParts, pathOf } from "./support/parts.ts";
import { readService, startUnit } from "./support/unit-process.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const unitFile = join(root, "deploy/systemd/nodekeeper.service");
const { version } = JSON.parse(readFileSync(join(root, "packages/agent/package.json"), "utf8"));
const nodeName = "unit-node";
const missing =
  missingParts("etcd", "kubeApiServer", "kubectl", "cnrDefinition") ??
  (process.getuid?.() === 0 ? undefined : "mount namespaces need root");

let directory: string;
let program: string;
/** Of the machine on which the documentation's commands install it. */
let shell: DocShell;

const blocksFor = (page: string) =>
  blocksOf(page, (runner) => runner.kind === "test" && runner.path === "test/e2e/single.e2e.test.ts");

beforeAll(async () => {
  // Not below /tmp, of which the unit has its own.
  directory = mkdtempSync("/var/tmp/nk-single-");
  await run(join(root, "node_modules/.bin/node"), ["scripts/single.ts", "--dist", directory], { cwd: root });
  program = join(directory, `nodekeeper-linux-${process.arch}`);
  shell = {
    directory,
    env: {},
    replacements: [
      [/\/usr\/local\/bin/g, join(directory, "bin")],
      [/(?<= )\/etc(?=\/)/g, join(directory, "etc")],
      [/nodekeeper-linux-x64/g, program],
      [/(?<= )nodekeeper\.service(?= )/g, unitFile],
      [/\bNODE\b/g, nodeName],
    ],
    programs: {
      hostname: `echo ${nodeName}`,
      // systemd is not the first process here: the test starts the unit in its place.
      systemctl: "[ $1 != enable ] || { touch enabled; until [ -e started ]; do sleep 0.1; done; }",
    },
  };
  prepareShell(shell);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("the single executable", () => {
  const nowhere = { cwd: "/", env: { PATH: "/nonexistent" } };

  it("has the commands, and needs no Node and no file beside it", async () => {
    const { stdout } = await run(program, ["version"], nowhere);
    expect(stdout).toMatch(new RegExp(`^nodekeeper ${version} \\(node v24`));
    const failure = await run(program, ["plugins", "list", "--server", "127.0.0.1:1"], nowhere).catch(
      (error) => error,
    );
    expect(failure.stderr).toMatch(/: NK\d{4}: [\s\S]*Remedy: /);
    expect(readFileSync(join(directory, "LICENSE-node.txt"), "utf8")).toMatch(/^Node\.js is licensed/);
  });

  it("is kubectl's plugin where it is called by that name", async () => {
    const [linked] = blocksFor("docs/kubectl-plugin.md");
    symlinkSync(program, join(directory, "bin/nodekeeper"));
    expect(await runBlock(linked!, directory, shell)).toEqual([]);
    const link = join(directory, "bin/kubectl-nodekeeper");
    const kubectl = "/nonexistent/kubectl";
    const failure = await run(link, ["status"], { ...nowhere, env: { KUBECTL: kubectl } }).catch(
      (error) => error,
    );
    expect(failure.stderr).toContain(`NK1714: failed to run kubectl (spawn ${kubectl} ENOENT)`);
    expect((await run(link, ["__complete", "--agent-n"], nowhere)).stdout).toContain("--agent-namespace");
  });

  it("has the same bytes when it is built again, elsewhere", async () => {
    const again = mkdtempSync(join(directory, "again-"));
    await run(join(root, "node_modules/.bin/node"), ["scripts/single.ts", "--dist", again], { cwd: root });
    expect(readFileSync(join(again, basename(program))).equals(readFileSync(program))).toBe(true);
  });

  it("names the package that has the development cluster", async () => {
    await expect(run(program, ["dev"], nowhere)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("npx nodekeeper dev"),
    });
  });
});

describe("the systemd unit", () => {
  it.skipIf(!existsSync("/usr/bin/systemd-analyze"))(
    "is understood by systemd, and exposes little",
    async () => {
      // The commands that it names are not installed on this machine.
      const unit = join(directory, "nodekeeper.service");
      writeFileSync(unit, readFileSync(unitFile, "utf8").replaceAll("/usr/local/bin/nodekeeper", program));
      const { stdout, stderr } = await run("systemd-analyze", ["verify", "--man=no", unit]);
      expect(stdout + stderr).toBe("");
      // Of 10; more than 2.5 fails.
      await run("systemd-analyze", ["security", "--offline=yes", "--threshold=25", unit]);
    },
  );

  it("sets what the agent would start over for", () => {
    const set = readService(unitFile)
      .get("Environment")!
      .flatMap((line) => line.split(" "));
    expect(set).toEqual(
      expect.arrayContaining(Object.entries(agentEnvironment).map((pair) => pair.join("="))),
    );
  });

  describe.skipIf(missing)("started as it says", () => {
    let cluster: ControlPlane;
    let child: Child;
    let server: string;

    beforeAll(async () => {
      cluster = await startControlPlane();
      const { metadata } = await cluster.addNode(nodeName);
      const port = await freePort();
      server = `http://127.0.0.1:${port}`;
      shell.env = {
        HOME: directory,
        KUBECONFIG: join(cluster.directory, "admin.kubeconfig"),
        NODEKEEPER_SERVER_ADDRESS: `127.0.0.1:${port}`,
      };
      shell.programs.kubectl = `exec "${pathOf("kubectl")}" "$@"`;
      prepareShell(shell);
      const [install, connect] = blocksFor("docs/systemd.md");
      expect(await runBlock(connect!, root, shell)).toEqual([]);
      const { namespace, name } = serviceAccount;
      const account = await cluster.admin.get(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}`);
      const user = { tokenFile: join(directory, "token") };
      const bound = { name: nodeName, uid: metadata.uid };
      const token = cluster.tokens.sign({ ...serviceAccount, uid: account.metadata.uid }, 3_600, bound);
      writeFileSync(user.tokenFile, token);
      const authority = join(directory, "ca.crt");
      writeFileSync(authority, readFileSync(cluster.trustFile));
      writeKubeconfig(join(directory, "kubeconfig"), { port: cluster.port, authority, user });

      mkdirSync(join(directory, "etc/default"), { recursive: true });
      const installed = runBlock(install!, directory, shell);
      const failed = installed.then((problems) => Promise.reject(new Error(problems.join("\n"))));
      const enabled = eventually(() => expect(existsSync(join(directory, "enabled"))).toBe(true));
      await Promise.race([enabled, failed]);
      child = startUnit(readService(join(directory, "etc/systemd/system/nodekeeper.service")), {
        directory: join(directory, "machine"),
        program: join(directory, "bin/nodekeeper"),
        environment: {
          ...parseEnv(readFileSync(join(directory, "etc/default/nodekeeper"), "utf8")),
          KUBECONFIG: join(directory, "etc/nodekeeper/kubeconfig"),
          NODEKEEPER_SERVER_ADDRESS: `127.0.0.1:${port}`,
          // No runtime and no kubelet on this machine: without lifecycle the local API is not served.
          NODEKEEPER_LIFECYCLE: "false",
          NODEKEEPER_EXTRA_ARGS: "--reporting-in-tree-plugins system-reporter-plugin",
        },
      });
      child.start();
      await ready();
      writeFileSync(join(directory, "started"), "");
      expect(await installed).toEqual([]);
    });
    afterAll(async () => {
      await child?.stop();
      await cluster?.stop();
    });

    const modeOf = (path: string) => statSync(join(directory, "machine", path)).mode & 0o777;
    const status = async (path: string) => {
      const response = await fetch(server + path);
      return { ok: response.ok, text: await response.text() };
    };
    const ready = () =>
      child.until("ready", async () => expect(await status("/readyz?verbose")).toMatchObject({ ok: true }));

    it("reports the node, without capabilities and without a directory of the machine's that it could write", async () => {
      await ready();
      await eventually(async () => {
        const path = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${nodeName}`;
        expect((await cluster.admin.get(path)).spec.nodeResourceProperties.length).toBeGreaterThan(0);
      });
      const process = readFileSync(`/proc/${child.pid}/status`, "utf8");
      expect(process).toMatch(/^CapBnd:\s0+$/m);
      expect(process).toMatch(/^CapEff:\s0+$/m);
      expect(process).toMatch(/^NoNewPrivs:\s1$/m);
      expect(readFileSync(`/proc/${child.pid}/mounts`, "utf8")).toMatch(/^\S+ \/ \S+ ro[, ]/m);
      expect(existsSync(join(directory, "machine/lib/nodekeeper/state/nodekeeper.db"))).toBe(true);
    });

    it("can write the directories of claims, which nothing had made before it started", () => {
      const mounts = readFileSync(`/proc/${child.pid}/mounts`, "utf8");
      for (const path of [
        "/run/nodekeeper",
        "/run/cdi",
        "/var/lib/nodekeeper",
        "/var/lib/kubelet/plugins_registry",
      ])
        expect(mounts).toMatch(new RegExp(`^\\S+ ${path} \\S+ rw[, ]`, "m"));
      for (const path of ["/", "/run", "/var/lib"])
        expect(mounts).toMatch(new RegExp(`^\\S+ ${path} \\S+ ro[, ]`, "m"));
      // Readers of CDI files are programs of any user; the kubelet's directories are root's.
      expect(modeOf("run/cdi")).toBe(0o755);
      expect(modeOf("lib/kubelet/plugins_registry")).toBe(0o750);
    });

    it("is in dry run, the default", async () => {
      const { text } = await status("/api/v1/node");
      expect(JSON.parse(text)).toMatchObject({ eviction: { mode: "dryRun", dryRunPlugins: ["*"] } });
    });

    it("starts again after a kill, and ends when it is stopped", async () => {
      await child.kill();
      child.start();
      await ready();
      await child.stop();
      await expect(status("/livez")).rejects.toThrow();
    });
  });
});
