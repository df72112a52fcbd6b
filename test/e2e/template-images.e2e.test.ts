import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeProject } from "../../packages/create-plugin/src/project.ts";
import { languages } from "../../packages/create-plugin/src/templates.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { baseImages } from "./support/base-images.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { ImageBuilder } from "./support/image-builder.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";
import { missingParts, type PartName } from "./support/parts.ts";
import { Registries } from "./support/registries.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const node24 = join(root, "node_modules/.bin/node");
const version = "0.1.0";
const missing = missingForNode() ?? missingParts("buildah", "dockerRegistry", "verdaccio");
/** Shows that the machine has the language's tools. */
const partOf: Readonly<Record<string, PartName>> = { go: "goSampleDriver", python: "pythonSampleDriver" };

// The base images are of the machine's programs: none can be pulled where the suite runs.
describe.skipIf(missing)("the image of a new driver's Dockerfile", () => {
  let directory: string;
  let registries: Registries;
  let builder: ImageBuilder;
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-images-"));
    registries = await Registries.start(directory);
    await publishPackages();
    builder = await ImageBuilder.create(join(directory, "builder"));
    cluster = await startControlPlane({ accounts: true });
    node = await startNode(cluster);
    // The directory of deploy/daemonset.yaml.
    agent = await node.startAgent({ "plugin-directories": "/var/lib/nodekeeper/plugins_registry" });
    await agent.ready();
  });
  afterAll(async () => {
    await agent?.child.stop();
    await node?.stop();
    await cluster?.stop();
    await registries?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  async function publishPackages(): Promise<void> {
    const dist = join(directory, "dist");
    await run(node24, ["scripts/build.ts", dist], { cwd: root });
    for (const name of ["nodekeeper", "sdk", "testing"])
      await run("npm", ["publish", "--silent", join(dist, name)], { cwd: directory, env: registries.env });
  }

  it.for(languages)(
    "in %s is built, and its DaemonSet's pod registers with the agent",
    async (language, { skip }) => {
      const part = partOf[language];
      const reason = part && missingParts(part);
      if (reason) skip(reason);
      const name = `${language}.example.com`;
      const project = join(directory, name);
      await writeProject({ directory: project, language, kind: "driver", name }, { root, version });
      // What the author commits.
      const lock = ["install", "--package-lock-only", "--no-audit", "--no-fund"];
      await run("npm", lock, { cwd: project, env: registries.env });
      const base = join(directory, `${language}-base`);
      mkdirSync(base);
      const mounts = await baseImages[language](builder, base);
      const npm = { [join(registries.env.HOME!, ".npmrc")]: "/root/.npmrc" };
      const archive = await builder.build(`${name}:0.1.0`, project, { ...mounts, ...npm });
      await node.containerd.ctr("image", "import", "--snapshotter", "native", archive);

      await cluster.kubectl.run("apply", "--filename", join(project, "deploy/daemonset.yaml"));
      await eventually(async () => {
        const { items } = await cluster.admin.get("/apis/resource.k8s.io/v1/resourceslices");
        const own = items.filter((slice: { spec: { driver: string } }) => slice.spec.driver === name);
        expect(own).toHaveLength(1);
        expect(own[0].spec.devices).toHaveLength(8);
      }).catch(async (error) => {
        throw new Error(await cluster.kubectl.run("describe", "pods"), { cause: error });
      });
      await cluster.kubectl.run("delete", "--wait", "--filename", join(project, "deploy/daemonset.yaml"));
    },
  );
});
