import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, type DocShell, prepareShell, runBlock } from "../support/doc-blocks.ts";
import { missingParts, pathOf } from "./support/parts.ts";
import { Registries } from "./support/registries.ts";

const root = join(import.meta.dirname, "../..");
const page = "docs/guides/install.md";

/** The machine's proxies and certificate authorities, by which npm downloads the other architecture's Node. */
const network = Object.fromEntries(
  Object.entries(process.env as Record<string, string>).filter(([name]) =>
    /^(NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|\w+_proxy)$/i.test(name),
  ),
);

interface ImageIndex {
  manifests: { platform: { architecture: string } }[];
}

describe.skipIf(missingParts("dockerRegistry", "skopeo", "verdaccio"))("the image from source", () => {
  let directory: string;
  let registries: Registries;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "nk-image-"));
    registries = await Registries.start(directory);
    const filter = (path: string) => !["node_modules", "dist", ".git"].includes(relative(root, path));
    cpSync(root, join(directory, "checkout"), { recursive: true, filter });
  });
  afterAll(async () => {
    await registries?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it(`is built for both architectures and pushed as ${page} shows`, async () => {
    const skopeo = `exec env HOME="${registries.env.HOME}" "${pathOf("skopeo")}"`;
    const shell: DocShell = {
      directory,
      env: { ...network, HOME: homedir(), npm_config_prefer_offline: "true", npm_config_audit: "false" },
      replacements: [[/REGISTRY/g, registries.oci]],
      programs: {
        node: `exec "${join(root, "node_modules/.bin/node")}" "$@"`,
        // The registry on loopback has no certificate.
        skopeo: `shift\n${skopeo} copy --dest-tls-verify=false "$@"`,
      },
    };
    prepareShell(shell);
    const [build] = blocksOf(
      page,
      (runner) => runner.kind === "test" && runner.path === "test/e2e/docs-image.e2e.test.ts",
    );
    expect(await runBlock(build!, join(directory, "checkout"), shell)).toEqual([]);
    const accept = "application/vnd.oci.image.index.v1+json";
    const [host, ...path] = registries.oci.split("/");
    const url = `http://${host}/v2/${path.join("/")}/nodekeeper/manifests/0.1.0`;
    const index = (await (await fetch(url, { headers: { accept } })).json()) as ImageIndex;
    const architectures = index.manifests.map(({ platform }) => platform.architecture);
    expect(architectures.sort()).toEqual(["amd64", "arm64"]);
  });
});
