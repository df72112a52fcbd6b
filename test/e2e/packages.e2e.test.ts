import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startDevCluster } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Kind, kinds } from "../../packages/create-plugin/src/templates.ts";
import { blocksOf, type DocShell, prepareShell, runBlock, startBlock } from "../support/doc-blocks.ts";
import { Child } from "./support/child.ts";
import { snippetsOf } from "./support/doc-snippets.ts";
import { freePort } from "./support/free-port.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const bin = join(root, "node_modules/.bin");

/** What a plugin author writes first: a plugin, and a test of it. */
const program = `
import { createLogger, customNodeResource, type ReporterPlugin, serveReporterPlugin, status } from "@nodekeeper/sdk";
import { type DevCluster, FakeClock, SimulatedRuntime, startDevCluster, until } from "@nodekeeper/testing";
import { eventually } from "@nodekeeper/testing/until";

const cluster: DevCluster = await startDevCluster();
const plugin: ReporterPlugin = serveReporterPlugin({
  name: "fans",
  socketDir: cluster.pluginDirectory,
  log: createLogger("silent"),
  async *report() {
    yield [customNodeResource(status("resources", { capacity: { "example.com/fans": "4" } }))];
  },
});
await until("the fans are published", () => {
  const object = cluster.apiServer.store.get("customnoderesources.node.katalyst.kubewharf.io", cluster.nodeName);
  return JSON.stringify(object).includes('"example.com/fans":"4"');
});
await eventually(() => void new SimulatedRuntime({ clock: new FakeClock() }));
await plugin.stop();
await cluster.stop();
console.log("it works");
`;

/** Programs of the documentation: plugins, which take their directory as an argument, and tests. */
const snippets = [
  "docs/guides/plugins.md",
  "docs/plugin-authors.md",
  "docs/first-driver.md",
  "docs/devices.md",
  "docs/guides/lifecycle.md",
  "packages/sdk/README.md",
  "packages/testing/README.md",
].flatMap(snippetsOf);

/** The blocks of a page that this suite runs. */
const blocksFor = (page: string) =>
  blocksOf(page, (runner) => runner.kind === "test" && runner.path === "test/e2e/packages.e2e.test.ts");

let project: string;
let shell: DocShell;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "nk-packages-"));
  shell = {
    directory: project,
    env: {
      HOME: homedir(),
      npm_config_prefer_offline: "true",
      npm_config_audit: "false",
      npm_config_fund: "false",
    },
    replacements: [
      [/\/tmp\/nkdev/g, join(project, "nkdev")],
      [/\/tmp\/coffee/g, join(project, "coffee")],
      [/(?<=--pack-destination )\/tmp/g, project],
      [/\/tmp(?=\/nodekeeper-)/g, project],
      [/127\.0\.0\.1:10377/g, `127.0.0.1:${await freePort()}`],
      [/\b0\.1\.0\b/g, version()],
    ],
    programs: {
      node: `exec "${join(bin, "node")}" "$@"`,
      // The checkout that this suite runs in is installed already.
      npm: `[ "$1" = ci ] || exec "${(await run("which", ["npm"])).stdout.trim()}" "$@"`,
    },
  };
  prepareShell(shell);
  const [pack] = blocksFor("docs/install.md");
  expect(await runBlock(pack!, root, shell)).toEqual([]);
  const tarballs = ["nodekeeper-sdk", "nodekeeper-testing", "nodekeeper", "nodekeeper-create-plugin"].map(
    (name) => `./${name}-${version()}.tgz`,
  );
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  writeFileSync(join(project, "program.ts"), program);
  // An npm that runs this suite names its own directory to those below it.
  const env = { ...process.env, npm_config_local_prefix: project };
  const install = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs];
  await run("npm", install, { cwd: project, env });
  // A project of CommonJS modules, as npm makes it; the packages are found in the directory above.
  mkdirSync(join(project, "docs"));
  await run("npm", ["init", "-y"], {
    cwd: join(project, "docs"),
    env: { ...env, npm_config_init_type: "commonjs" },
  });
  for (const { page, file, code } of snippets) {
    mkdirSync(join(project, "docs", directoryOf(page)), { recursive: true });
    writeFileSync(join(project, "docs", directoryOf(page), file), code);
  }
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

function directoryOf(page: string): string {
  return page.replaceAll(/[/.]/g, "-");
}

function version(): string {
  return JSON.parse(readFileSync(join(root, "packages/agent/package.json"), "utf8")).version;
}

it.each([
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
])(
  "types of the public packages resolve under module %s, resolution %s",
  async (module, moduleResolution) => {
    const compilerOptions = {
      module,
      moduleResolution,
      target: "es2024",
      lib: ["es2024", "esnext.disposable"],
      strict: true,
      noEmit: true,
      // Also within the packages: what they import must be installed with them.
      skipLibCheck: false,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
    };
    const config = join(project, `tsconfig.${module}.json`);
    const inDocs = snippets.filter(({ file }) => file.endsWith(".mts"));
    const files = ["program.ts", ...inDocs.map(({ page, file }) => `docs/${directoryOf(page)}/${file}`)];
    writeFileSync(config, JSON.stringify({ compilerOptions, files }));
    const { stdout } = await run(join(bin, "tsc"), ["-p", config], { cwd: project }).catch((error) => error);
    expect(stdout).toBe("");
  },
);

it("what a plugin on the SDK reports is published in a development cluster, which finds the agent by itself", async () => {
  const { stdout } = await run(join(bin, "node"), ["program.ts"], { cwd: project });
  expect(stdout).toBe("it works\n");
});

it("the agent's package has its command, and needs no other package", async () => {
  const directory = join(project, "node_modules/nodekeeper");
  const { dependencies, engines } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  expect({ dependencies, engines }).toEqual({ dependencies: undefined, engines: { node: ">=24" } });
  const command = join(project, "node_modules/.bin/nodekeeper");
  const { stdout } = await run(join(bin, "node"), [command, "version"], { cwd: project });
  expect(stdout).toMatch(new RegExp(`^nodekeeper ${version()} \\(node v24`));
});

it("the command names which Node it needs where it is run by an older one", async () => {
  const older = "Object.defineProperty(process.versions, 'node', { value: '20.11.1' })";
  const command = join(project, "node_modules/.bin/nodekeeper");
  const args = ["--import", `data:text/javascript,${encodeURIComponent(older)}`, command, "version"];
  await expect(run(join(bin, "node"), args, { cwd: project })).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^nodekeeper needs Node 24 or later; this is Node 20\.11\.1 \(.*\)\n$/),
  });
});

describe("programs in the documentation, in a project made by npm init", () => {
  const isTest = ({ file }: { file: string }) => file.includes(".test.");
  const isWatch = ({ code }: { code: string }) => code.includes("PodLifecycleClient");

  it("plugins register with the agent of a development cluster, and what watches pods gets them", async () => {
    const agentScript = join(project, "node_modules/nodekeeper/nodekeeper.js");
    await using cluster = await startDevCluster({ agentScript });
    await using started = new AsyncDisposableStack();
    for (const [index, snippet] of snippets.filter((each) => !isTest(each)).entries()) {
      const cwd = join(project, "docs", directoryOf(snippet.page));
      // Each has a directory of its own: the SDK's README has the plugin of the guide, with its name.
      const directory = join(cluster.pluginDirectory, String(index));
      const child = new Child({
        name: snippet.file,
        command: join(bin, "node"),
        args: [join(cwd, snippet.file), isWatch(snippet) ? cluster.apiSocket : directory],
        logFile: join(cwd, `${snippet.file}.log`),
      });
      started.defer(() => child.stop());
      child.start();
      await child.until("working", async () => {
        if (isWatch(snippet)) return expect(child.log).toContain("0 pods");
        const plugins = await cluster.agentApi<{ registrationSocket?: string; state: string }[]>("plugins");
        const found = plugins.find(({ registrationSocket }) =>
          registrationSocket?.startsWith(`${directory}/`),
        );
        expect(found?.state).toBe("registered");
      });
    }
  });

  it.each(snippets.filter(isTest))("$page: $file passes", async ({ page, file }) => {
    const cwd = join(project, "docs", directoryOf(page));
    await run(join(bin, "node"), ["--test", file], { cwd });
  });
});

it("the SDK's archive is installed into a project as docs/install.md shows", async () => {
  const cwd = join(project, "another");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true }));
  const [, install] = blocksFor("docs/install.md");
  expect(await runBlock(install!, cwd, shell)).toEqual([]);
  expect(JSON.parse(readFileSync(join(cwd, "package.json"), "utf8")).dependencies).toHaveProperty(
    "@nodekeeper/sdk",
  );
});

it("a project is created from the archives as docs/install.md shows", async () => {
  const [, , create] = blocksFor("docs/install.md");
  expect(await runBlock(create!, project, shell)).toEqual([]);
  const { devDependencies } = JSON.parse(readFileSync(join(project, "my-driver/package.json"), "utf8"));
  expect(devDependencies.nodekeeper).toMatch(/^file:/);
});

// A block of `sh` stays in the foreground of its terminal; a later `console` shows what another terminal prints.
it.each(["docs/first-driver.md", "docs/guides/plugins.md"])(
  "%s: its program is seen beside the development cluster",
  async (page) => {
    const cwd = join(project, "docs", directoryOf(page));
    await using terminals = new AsyncDisposableStack();
    for (const block of blocksFor(page)) {
      if (block.language === "console") {
        await eventually(async () => expect(await runBlock(block, cwd, shell)).toEqual([]));
        continue;
      }
      const terminal = terminals.use(startBlock(block, cwd, shell));
      await until("it has started", () => terminal.output() !== "", { explain: () => block.text });
    }
  },
);

describe("npm create @nodekeeper/plugin", () => {
  /** Creates a project with the packed command, and returns its directory and commands. */
  async function create(kind: Kind, language: string) {
    const directory = `my-${language}-${kind}`;
    const command = join(project, "node_modules/.bin/create-plugin");
    await run(join(bin, "node"), [command, directory, "--kind", kind, "--language", language], {
      cwd: project,
    });
    const cwd = join(project, directory);
    const { scripts } = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"));
    return { cwd, scripts: scripts as Record<string, string> };
  }

  /** The project's own test: the plugin beside an agent in a development cluster. */
  async function test(cwd: string, more: Record<string, string> = {}): Promise<void> {
    const env = { ...process.env, ...more, PATH: `${bin}:${process.env.PATH}` };
    const { stdout } = await run(join(bin, "node"), ["--test", "--test-force-exit"], { cwd, env });
    expect(stdout).toMatch(/^. pass 1$/m);
  }

  it.each(kinds)("kind %s in TypeScript has no type error, and passes its test", async (kind) => {
    const { cwd } = await create(kind, "typescript");
    const types = ["--typeRoots", join(root, "node_modules/@types")];
    const { stdout } = await run(join(bin, "tsc"), types, { cwd }).catch((error) => error);
    expect(stdout).toBe("");
    await test(cwd);
  });

  it.for(kinds)("kind %s in Go builds as it stands, and passes its test", async (kind, { skip }) => {
    const missing = missingParts("goSampleDriver");
    if (missing) skip(missing);
    const { cwd, scripts } = await create(kind, "go");
    // As test/e2e/prepare builds programs with the same packages: Go's cache has them.
    const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-trimpath", GOWORK: "off" };
    await run("sh", ["-c", scripts.build!], { cwd, env });
    await test(cwd);
  });

  it.for(kinds)("kind %s in Python passes its test", async (kind, { skip }) => {
    const missing = missingParts("pythonSampleDriver");
    if (missing) skip(missing);
    const { cwd } = await create(kind, "python");
    // The sample driver's packages in place of those that the project's build installs: requirements.txt is the same.
    const packages = pathOf("pythonSampleDriver");
    const required = readFileSync(join(packages, "requirements.txt"), "utf8");
    expect(readFileSync(join(cwd, "requirements.txt"), "utf8")).toBe(
      required.replace("../../sdk-python", "./sdk-python"),
    );
    mkdirSync(join(cwd, ".venv/bin"), { recursive: true });
    const path = `${join(cwd, "sdk-python")}:${packages}`;
    const program = `#!/bin/sh\nexec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${path} python3 "$@"\n`;
    writeFileSync(join(cwd, ".venv/bin/python"), program, { mode: 0o755 });
    await test(cwd);
  });
});
