// Makes the container image without a container engine: npm run image -- --help
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { agentEnvironment } from "../packages/agent/src/launch.ts";
import { readArguments } from "./arguments.ts";
import { sourceDateEpoch } from "./bundle.ts";
import { ImageLayout, type PlatformImage } from "./image/archive.ts";
import { architectures, chosenArchitectures, writeAgent, writeBase } from "./image/root-filesystem.ts";
import { printProgress, root, withTemporaryDirectory } from "./programs.ts";
import { type Component, debianComponent, nodeComponent, sbomOf } from "./supply/sbom.ts";

const help = `usage: npm run image -- [options]

Makes the agent's image as an archive in the OCI layout, and a CycloneDX bill of materials of each architecture beside it. It needs tar, apt-get and dpkg-deb, no container engine and not
root; the same sources and packages give the same bytes.

  --arch A[,A]   amd64, arm64 (default both)
  --name NAME    the image's name with its tag (default nodekeeper:VERSION)
  --dist DIRECTORY  what \`npm run build\` made (default dist)
  --output FILE  (default dist/nodekeeper-image.tar)
  --help

SOURCE_DATE_EPOCH, in seconds, is the time that its files have (default 0).

  ctr -n k8s.io image import dist/nodekeeper-image.tar
  skopeo copy --all oci-archive:dist/nodekeeper-image.tar docker://…`;

/** Of one architecture, compressed: what a node pulls. */
const MOST_BYTES = 60e6;

const options = {
  arch: { type: "string", default: architectures.map((each) => each.name).join(",") },
  name: { type: "string" },
  dist: { type: "string", default: join(root, "dist") },
  output: { type: "string", default: join(root, "dist/nodekeeper-image.tar") },
} as const;
const { chosen, dist, givenName, output } = readArguments(help, { options }, ({ values }) => ({
  chosen: chosenArchitectures(values.arch, "name"),
  dist: resolve(values.dist),
  givenName: values.name,
  output: resolve(values.output),
}));
const { version, description, license } = JSON.parse(
  readFileSync(join(dist, "nodekeeper/package.json"), "utf8"),
);
const name = givenName ?? `nodekeeper:${version}`;
const runtime = runtimeOf();
await withTemporaryDirectory(async (work) => {
  const layout = new ImageLayout(join(work, "layout"), sourceDateEpoch());
  const agent = join(work, "agent");
  writeAgent(agent, join(dist, "nodekeeper"));
  const agentLayer = await layout.addLayer(agent, `nodekeeper ${version}`);
  const images: PlatformImage[] = [];
  for (const architecture of chosen) {
    const base = join(work, `base-${architecture.name}`);
    const contents = await writeBase(base, work, architecture);
    const layers = [await layout.addLayer(base, contents.join(", ")), agentLayer];
    images.push({ architecture: architecture.name, layers, runtime });
    writeSbom(architecture.name, contents);
    const bytes = layers.reduce((sum, { descriptor }) => sum + descriptor.size, 0);
    printProgress(`${architecture.name}: ${(bytes / 1e6).toFixed(1)} MB compressed: ${contents.join(", ")}`);
    if (bytes > MOST_BYTES)
      throw new Error(`${architecture.name}: larger than ${MOST_BYTES / 1e6} MB compressed`);
  }
  layout.finish(name, images);
  mkdirSync(dirname(output), { recursive: true });
  await layout.writeArchive(output);
  printProgress(`${name}: ${output}, ${(statSync(output).size / 1e6).toFixed(1)} MB`);
});

/** The bill of materials of one architecture's image, beside the archive. */
function writeSbom(architecture: string, contents: readonly string[]): void {
  const agent = JSON.parse(readFileSync(join(dist, "nodekeeper/sbom.cdx.json"), "utf8"));
  const base = contents.map((each) => {
    const [package_ = "", ofPackage = ""] = each.split(" ");
    return package_ === "node"
      ? nodeComponent(ofPackage)
      : debianComponent(package_, ofPackage, architecture);
  });
  const components = [...base, ...(agent.components as Component[])];
  const subject = { name: "nodekeeper", version, licence: license, description, type: "container" } as const;
  writeFileSync(
    `${output.replace(/\.tar$/, "")}-${architecture}.cdx.json`,
    sbomOf(subject, components, sourceDateEpoch()),
  );
}

/** What the container runs with. Root only where the pod sets it: the runtime's socket is root's. */
function runtimeOf(): object {
  return {
    User: "65532:65532",
    Env: [
      "PATH=/usr/bin",
      // Set here, the agent does not have to start over.
      ...Object.entries(agentEnvironment).map(([key, value]) => `${key}=${value}`),
    ],
    Entrypoint: ["/usr/bin/nodekeeper"],
    Cmd: ["run"],
    Labels: {
      "org.opencontainers.image.title": "nodekeeper",
      "org.opencontainers.image.description": description,
      "org.opencontainers.image.version": version,
      "org.opencontainers.image.licenses": license,
    },
  };
}
