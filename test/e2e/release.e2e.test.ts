import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { withPublication } from "../../scripts/docs/publication.ts";
import { blocksOf, type DocShell, prepareShell, runBlock } from "../support/doc-blocks.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { freePort } from "./support/free-port.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";
import { missingParts, pathOf } from "./support/parts.ts";
import { Registries } from "./support/registries.ts";

const execute = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const node24 = join(root, "node_modules/.bin/node");
const NAMESPACE = "nodekeeper";
const missing = missingForNode() ?? missingParts("helm", "dockerRegistry", "skopeo", "verdaccio");

/** Pages whose commands install packages of npm. */
const packagePages = [
  "docs/guides/plugins.md",
  "docs/first-driver.md",
  "docs/guides/kubectl-plugin.md",
  "packages/create-plugin/README.md",
  "packages/sdk/README.md",
  "packages/testing/README.md",
];

// A release as .github/workflows/release.yml makes it, of this machine's architecture, into registries on loopback.
describe.skipIf(missing)("a release", () => {
  let directory: string;
  let registries: Registries;
  let cluster: ControlPlane;
  let node: ClusterNode;
  let shell: DocShell;
  /** What .ci/publish publishes. */
  let release: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-release-"));
    registries = await Registries.start(directory);
    const [values] = await Promise.all([startCluster(), build()]);
    const real = (name: "skopeo" | "helm") => `real=("${pathOf(name)}")`;
    shell = {
      directory,
      env: {
        ...registries.env,
        REGISTRY: registries.oci,
        KUBECONFIG: join(cluster.directory, "admin.kubeconfig"),
        npm_config_yes: "true",
        npm_config_prefix: directory,
      },
      replacements: [],
      programs: {
        node: `exec "${node24}" "$@"`,
        kubectl: `exec "${pathOf("kubectl")}" "$@"`,
        skopeo: `${real("skopeo")}\n${interruptible}`,
        npm: `real=("${(await execute("which", ["npm"])).stdout.trim()}")\n${interruptible}`,
        // The documentation's commands as they are, but for what belongs to this node and this registry.
        helm: `case $1 in install) set -- "$@" ${values} ;; esac\n${real("helm")}\n${interruptible}`,
      },
    };
    prepareShell(shell);
  });

  afterAll(async () => {
    await node?.stop();
    await cluster?.stop();
    await registries?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const script = (name: string, ...args: string[]) =>
    execute(node24, [`scripts/${name}.ts`, ...args], { cwd: root });

  async function build(): Promise<void> {
    const dist = join(directory, "dist");
    await script("build", dist);
    const image = join(dist, "nodekeeper-image.tar");
    const architecture = process.arch === "x64" ? "amd64" : process.arch;
    await script("image", "--arch", architecture, "--dist", dist, "--output", image);
    release = await releaseFor(registries.oci, "release");
  }

  /** Returns the directory of what is published into a registry. */
  async function releaseFor(registry: string, name: string): Promise<string> {
    const dist = join(directory, "dist");
    const output = join(directory, name);
    await script("release", "--dist", dist, "--registry", registry, "--output", output);
    return output;
  }

  /** Returns the flags of Helm that belong to this node. */
  async function startCluster(): Promise<string> {
    cluster = await startControlPlane({ accounts: true });
    node = await startNode(cluster);
    const { socket } = node.containerd;
    const values = [
      ...["kubernetesService.host=127.0.0.1", `kubernetesService.port=${cluster.port}`],
      ...[`hostPaths.runtime=${dirname(socket)}`, `lifecycle.runtimeEndpoint=unix://${socket}`],
      `statusServer.port=${await freePort()}`,
    ].flatMap((value) => ["--set", value]);
    return [...values, "--plain-http", "--wait", "--timeout", "4m"].join(" ");
  }

  /** Runs .ci/publish; with `interrupt`, such as "npm publish", it is killed after its first such command. */
  async function publish(from: string, { registry = registries.oci, interrupt = "" } = {}) {
    const env = {
      ...shell.env,
      REGISTRY: registry,
      INTERRUPT: interrupt,
      PATH: `${join(directory, "bin")}:${process.env.PATH}`,
    };
    const ran = execute(join(root, ".ci/publish"), ["--plain-http", from], { env });
    const { stdout, stderr, signal, code } = await ran.catch((error) => error);
    return { stdout, stderr, signal, code };
  }

  /** The blocks of a page that a test runs, as they are once a release is published here. */
  function released(page: string, test: string) {
    const text = withPublication(page, readFileSync(join(root, page), "utf8"), registries.oci);
    return blocksOf(page, (runner) => runner.kind === "test" && runner.path === test, text);
  }

  it("is published by the run after those that were interrupted, and changed by no further one", async () => {
    for (const interrupt of ["skopeo copy", "npm publish"])
      expect(await publish(release, { interrupt })).toMatchObject({ signal: "SIGKILL", stdout: "" });
    const last = await publish(release);
    expect(last.stderr.match(/\S+ is already published/g)).toHaveLength(3);
    expect(last.stderr.match(/^publishing .*create-plugin/gm)).toHaveLength(1);
    const digest = "sha256:[0-9a-f]{64}";
    expect(last.stdout).toMatch(
      new RegExp(
        `^image=${registries.oci}/nodekeeper\nimage-digest=${digest}\n\\w+-digest=${digest}\n` +
          `chart=${registries.oci}/charts/nodekeeper\nchart-digest=${digest}\n$`,
      ),
    );
    const again = await publish(release);
    expect(again.stderr).not.toMatch(/^publishing/m);
    expect(again.stdout).toBe(last.stdout);
  });

  it("publishes nothing if a registry has other content under its version", async () => {
    const elsewhere = `${registries.oci}-other`;
    const other = await releaseFor(elsewhere, "other");
    const packages = join(other, "packages");
    const sdk = join(packages, readdirSync(packages).find((name) => name.includes("-sdk-"))!);
    const changed = join(directory, "changed");
    mkdirSync(changed);
    await execute("tar", ["-xzf", sdk, "-C", changed]);
    writeFileSync(join(changed, "package/README.md"), "changed");
    await execute("tar", ["-czf", sdk, "-C", changed, "package"]);
    const ran = await publish(other, { registry: elsewhere });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(
      /@nodekeeper\/sdk@\S+ is already published with other content: .* Nothing was published/,
    );
    expect(await registries.repositories()).toEqual(["e2e/charts/nodekeeper", "e2e/nodekeeper"]);
  });

  it("publishes nothing if its chart names the image of another registry", async () => {
    const ran = await publish(release, { registry: `${registries.oci}-other` });
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(
      /names the image \S+\/e2e\/nodekeeper@sha256:\w+, not \S+\/e2e-other\/nodekeeper@sha256:/,
    );
    expect(await registries.repositories()).toEqual(["e2e/charts/nodekeeper", "e2e/nodekeeper"]);
  });

  it("publishes nothing if the registry has something under the chart's name that is no chart", async () => {
    const taken = `${registries.oci}-taken`;
    const other = await releaseFor(taken, "taken");
    const { version } = parse(
      (await execute("tar", ["-xOzf", join(other, "chart.tgz"), "nodekeeper/Chart.yaml"])).stdout,
    );
    const image = `oci-archive:${join(other, "image.tar")}`;
    // An index, which has no layers.
    const copy = [
      "copy",
      "--all",
      "--dest-tls-verify=false",
      image,
      `docker://${taken}/charts/nodekeeper:${version}`,
    ];
    await execute(pathOf("skopeo"), copy, { env: { ...process.env, ...registries.env } });
    const ran = await publish(other, { registry: taken });
    expect(ran).toMatchObject({ code: 1, stdout: "", stderr: expect.not.stringMatching(/^publishing/m) });
    expect(await registries.repositories()).not.toContain("e2e-taken/nodekeeper");
  });

  it("publishes nothing if a registry does not answer", async () => {
    const registry = `127.0.0.1:${await freePort()}/e2e`;
    const ran = await publish(await releaseFor(registry, "unreachable"), { registry });
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining("connection refused") });
  });

  it.each(packagePages)("has the packages that %s installs", async (page) => {
    const cwd = join(directory, "pages", page.replaceAll("/", "-"));
    mkdirSync(cwd, { recursive: true });
    writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true }));
    const blocks = released(page, "test/e2e/release.e2e.test.ts");
    expect(blocks.length).toBeGreaterThan(0);
    for (const block of blocks) expect(await runBlock(block, cwd, shell)).toEqual([]);
  });

  it("has the chart that docs/guides/install.md installs: the node pulls its image by digest, and the agent is ready", async () => {
    const [install] = released("docs/guides/install.md", "test/e2e/helm.e2e.test.ts");
    expect(install?.text).toContain(`oci://${registries.oci}/charts/nodekeeper`);
    expect(await runBlock(install!, directory, shell)).toEqual([]);
    const { items } = await cluster.admin.get(`/api/v1/namespaces/${NAMESPACE}/pods`);
    const [pod] = items as ApiObject[];
    const { stdout } = await publish(release);
    const [, digest] = /^image-digest=(.*)$/m.exec(stdout)!;
    const name = `${registries.oci}/nodekeeper@${digest}`;
    expect(pod?.spec.containers[0].image).toBe(name);
    expect(pod?.status.containerStatuses[0]).toMatchObject({ ready: true, imageID: name });
  });
});

/** After it, a script of bash in which INTERRUPT kills the one that runs it. */
const interruptible = `"\${real[@]}" "$@"
status=$?
[[ "$(basename "$0") $1" != "$INTERRUPT" ]] || kill -KILL $PPID
exit $status`;
