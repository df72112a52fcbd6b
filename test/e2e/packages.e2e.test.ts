import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";

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

let project: string;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "nk-packages-"));
  await run(join(bin, "node"), ["scripts/build.ts"], { cwd: root });
  const folders = ["sdk", "testing", "nodekeeper"].map((name) => join(root, "dist", name));
  await run("npm", ["pack", "--silent", "--pack-destination", project, ...folders], { cwd: project });
  const tarballs = ["nodekeeper-sdk", "nodekeeper-testing", "nodekeeper"].map(
    (name) => `./${name}-${version()}.tgz`,
  );
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  writeFileSync(join(project, "program.ts"), program);
  // An npm that runs this suite names its own folder to those below it.
  const env = { ...process.env, npm_config_local_prefix: project };
  const install = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs];
  await run("npm", install, { cwd: project, env });
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

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
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ["program.ts"] }));
    const { stdout } = await run(join(bin, "tsc"), ["-p", config], { cwd: project }).catch((error) => error);
    expect(stdout).toBe("");
  },
);

it("what a plugin on the SDK reports is published in a development cluster, which finds the agent by itself", async () => {
  const { stdout } = await run(join(bin, "node"), ["program.ts"], { cwd: project });
  expect(stdout).toBe("it works\n");
});

it("the agent's package has its command, and needs no other package", async () => {
  const folder = join(project, "node_modules/nodekeeper");
  const { dependencies, engines } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
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
