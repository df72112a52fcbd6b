import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  blocksOf,
  type DocShell,
  prepareShell,
  runBlock,
  startBlock,
  writeFilesOf,
} from "../support/doc-blocks.ts";
import { coffeeLanguages, writeCoffeeProject } from "./support/coffee-project.ts";
import { imageName } from "./support/container-image.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { snippetsOf } from "./support/doc-snippets.ts";
import { freePort } from "./support/free-port.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const node24 = join(root, "node_modules/.bin/node");
const page = "docs/first-driver.md";

// Every command of the page from its third step on, in the project of its first step.
describe.skipIf(missingForNode())(`${page} on a real node`, () => {
  const [install, connect, agent, driver, registered, apply, logs] = blocksOf(
    page,
    (runner) => runner.kind === "test" && runner.path === "test/e2e/first-driver.e2e.test.ts",
  );
  let directory: string;
  let project: string;
  let cluster: ControlPlane;
  let node: ClusterNode;
  /** Of the administrator, and of root on the node. */
  let admin: DocShell;
  let onNode: DocShell;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-first-driver-"));
    project = join(directory, "coffee");
    mkdirSync(project);
    cluster = await startControlPlane({ accounts: true });
    // The API server reaches it at the address of the Node.
    node = await startNode(cluster, { kubelet: { address: "0.0.0.0" } });
    await installPackages();
    for (const { file, code } of snippetsOf(page)) writeFileSync(join(project, file), code);
    writeFilesOf(page, project);
    const pod = readFileSync(join(project, "pod.yaml"), "utf8");
    writeFileSync(join(project, "pod.yaml"), pod.replace("image: busybox", `image: ${imageName}`));
    copyFileSync(cluster.trustFile, join(project, "ca.crt"));
    admin = {
      directory,
      env: { HOME: directory, KUBECONFIG: join(cluster.directory, "admin.kubeconfig") },
      replacements: [
        [/API-SERVER:6443/g, `127.0.0.1:${cluster.port}`],
        [/\bNODE\b/g, node.name],
      ],
      programs: { node: `exec "${node24}" "$@"`, kubectl: `exec "${pathOf("kubectl")}" "$@"` },
    };
    onNode = {
      ...admin,
      enter: node.enter,
      env: {
        ...admin.env,
        CONTAINER_RUNTIME_ENDPOINT: `unix://${node.containerd.socket}`,
        NODEKEEPER_SERVER_ADDRESS: `127.0.0.1:${await freePort()}`,
      },
    };
    prepareShell(admin);
  });
  afterAll(async () => {
    await node?.stop();
    await cluster?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  // What the page's first step installs, of this checkout.
  async function installPackages(): Promise<void> {
    const dist = join(directory, "dist");
    await run(node24, ["scripts/build.ts", dist], { cwd: root });
    const built = ["sdk", "nodekeeper"].map((name) => join(dist, name));
    await run("npm", ["pack", "--silent", "--pack-destination", directory, ...built], { cwd: project });
    const { version } = JSON.parse(readFileSync(join(root, "packages/agent/package.json"), "utf8"));
    const archives = ["nodekeeper-sdk", "nodekeeper"].map((name) => `../${name}-${version}.tgz`);
    writeFileSync(join(project, "package.json"), JSON.stringify({ private: true }));
    // An npm that runs this suite names its own directory to those below it.
    const env = { ...process.env, HOME: homedir(), npm_config_local_prefix: project };
    const words = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...archives];
    await run("npm", words, { cwd: project, env });
  }

  // The agent runs in one terminal, the driver of each language in another.
  it("ends with a running pod that has the machine, in each language", async () => {
    expect(await runBlock(install!, project, admin)).toEqual([]);
    expect(await runBlock(connect!, project, onNode)).toEqual([]);
    await using terminals = new AsyncDisposableStack();
    const agentTerminal = terminals.use(startBlock(agent!, project, onNode));
    for (const { cwd, block } of await drivers()) {
      await using driverTerminal = startBlock(block, cwd, onNode);
      const printed = () =>
        [agentTerminal, driverTerminal].map((each) => each.output().slice(-4_000)).join("\n\n");
      await eventually(async () => {
        expect(await runBlock(registered!, project, onNode), printed()).toEqual([]);
        // Not that of the driver before.
        expect(driverTerminal.output(), printed()).toContain("registered");
      });
      expect(await runBlock(apply!, project, admin), printed()).toEqual([]);
      await eventually(async () => expect(await runBlock(logs!, project, admin)).toEqual([]));
      await cluster.kubectl.run("delete", "--wait", "-f", join(project, "pod.yaml"));
    }
  });

  /** Where the driver of each language is started, and the page's block with its command. */
  async function drivers(): Promise<{ cwd: string; block: typeof driver & {} }[]> {
    const found = [{ cwd: project, block: driver! }];
    for (const language of coffeeLanguages) {
      if (missingParts(language === "go" ? "goSampleDriver" : "pythonSampleDriver")) continue;
      const { directory: cwd, env, scripts } = await writeCoffeeProject(language, join(directory, language));
      if (language === "go")
        await run("sh", ["-c", scripts.build!], { cwd, env: { ...process.env, ...env } });
      found.push({ cwd, block: { ...driver!, text: scripts.start! } });
    }
    return found;
  }
});
