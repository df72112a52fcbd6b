import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, type DocShell, prepareShell, runBlock } from "../support/doc-blocks.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { optionalRbacFile } from "./support/nodekeeper-install.ts";
import { controlPlaneParts, missingParts, pathOf } from "./support/parts.ts";

const root = join(import.meta.dirname, "../..");
const missing = missingParts(...controlPlaneParts);

/** The blocks of a page that this suite runs. */
const blocksFor = (page: string) =>
  blocksOf(page, (runner) => runner.kind === "test" && runner.path === "test/e2e/docs-manifests.e2e.test.ts");

// What an operator without Helm does, with an API server alone: no pod is started.
describe.skipIf(missing)("the manifests", () => {
  const [apply, remove] = blocksFor("docs/install.md");
  let directory: string;
  let cluster: ControlPlane;
  let shell: DocShell;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-manifests-"));
    cluster = await startControlPlane();
    const node24 = join(root, "node_modules/.bin/node");
    shell = {
      directory,
      env: { HOME: directory, KUBECONFIG: join(cluster.directory, "admin.kubeconfig") },
      replacements: [],
      programs: {
        kubectl: `exec "${pathOf("kubectl")}" "$@"`,
        nodekeeper: `exec "${node24}" "${join(root, "packages/agent/src/main.ts")}" "$@"`,
      },
    };
    prepareShell(shell);
  });
  afterAll(async () => {
    await cluster?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it("are applied as docs/install.md shows", async () => {
    expect(await runBlock(apply!, root, shell)).toEqual([]);
    expect(await cluster.kubectl.run("get", "daemonset", "-n", "nodekeeper", "-o", "name")).toMatch(
      /nodekeeper/,
    );
  });

  it("an account that may read the status server is made as docs/page.md shows", async () => {
    await cluster.kubectl.run("apply", "-f", optionalRbacFile);
    for (const block of blocksFor("docs/page.md")) expect(await runBlock(block, root, shell)).toEqual([]);
    const account = "--as=system:serviceaccount:nodekeeper:node-viewer";
    expect(await cluster.kubectl.run("auth", "can-i", "get", "/nodekeeper/api/v1/node", account)).toMatch(
      /^yes/,
    );
  });

  it("the agents' traces are removed as docs/install.md shows", async () => {
    await cluster.addNode("worker-1");
    const object = join(directory, "cnr.json");
    writeFileSync(
      object,
      JSON.stringify({
        apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
        kind: "CustomNodeResource",
        metadata: { name: "worker-1", labels: { fans: "4" } },
      }),
    );
    await cluster.kubectl.run("apply", "--server-side", "--field-manager=nodekeeper", "-f", object);
    expect(await runBlock(remove!, root, shell)).toEqual([]);
    expect(await cluster.kubectl.run("get", "daemonset", "-n", "nodekeeper", "-o", "name")).toBe("");
    expect(await cluster.kubectl.run("get", "customnoderesources", "-o", "name")).toBe("");
  });
});
