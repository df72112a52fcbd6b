import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { writeProject } from "../../packages/create-plugin/src/project.ts";
import { kinds, languages } from "../../packages/create-plugin/src/templates.ts";
import { blocksOf, type DocShell, prepareShell, runBlock } from "../support/doc-blocks.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const root = join(import.meta.dirname, "../..");
const paths: Record<string, string> = {
  ServiceAccount: "/api/v1/namespaces/default/serviceaccounts",
  DaemonSet: "/apis/apps/v1/namespaces/default/daemonsets",
};

describe.skipIf(missingParts("etcd", "openssl", "kubeApiServer", "kubectl"))(
  "the DaemonSet of a new plugin",
  () => {
    let cluster: ControlPlane;
    let projects: string;

    beforeAll(async () => {
      projects = mkdtempSync(join(tmpdir(), "nk-projects-"));
      cluster = await startControlPlane();
    });
    afterAll(async () => {
      await cluster?.stop();
      rmSync(projects, { recursive: true, force: true });
    });

    it.each(languages.flatMap((language) => kinds.map((kind) => ({ language, kind }))))(
      "for a $kind in $language is accepted by kube-apiserver, which knows each of its fields",
      async ({ language, kind }) => {
        const name = `${kind}-${language}.example.com`;
        const directory = join(projects, name);
        await writeProject({ directory, language, kind, name }, { root, version: "1.2.3" });
        await expectAccepted(name, join(directory, "deploy/daemonset.yaml"));
      },
    );

    it("of the sample network driver is accepted, too", async () => {
      await expectAccepted(
        "network.example.com",
        join(root, "examples/driver-network/deploy/daemonset.yaml"),
      );
    });

    async function expectAccepted(name: string, file: string): Promise<void> {
      const objects = parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS());
      expect(objects.map((object) => object.kind)).toEqual(["ServiceAccount", "DaemonSet"]);
      for (const object of objects) {
        const created = await cluster.admin.create(`${paths[object.kind]}?fieldValidation=Strict`, object);
        expect(created.metadata).toMatchObject({ name, uid: expect.any(String) });
      }
    }

    it("is applied as docs/daemonset.md shows", async () => {
      const name = "my-reporter";
      const directory = join(projects, name);
      await writeProject(
        { directory, language: "typescript", kind: "reporter", name },
        { root, version: "1.2.3" },
      );
      const shell: DocShell = {
        directory: projects,
        env: { HOME: projects, KUBECONFIG: join(cluster.directory, "admin.kubeconfig") },
        replacements: [],
        programs: { kubectl: `exec "${pathOf("kubectl")}" "$@"` },
      };
      prepareShell(shell);
      await cluster.kubectl.run("create", "namespace", "nodekeeper");
      const [apply] = blocksOf("docs/daemonset.md", ({ kind }) => kind === "test");
      expect(await runBlock(apply!, directory, shell)).toEqual([]);
      const found = await cluster.admin.get(`/apis/apps/v1/namespaces/nodekeeper/daemonsets/${name}`);
      expect(found.spec.template.spec.containers).toHaveLength(1);
    });
  },
);
