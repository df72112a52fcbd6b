import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, matchesGlob } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentOptions } from "../packages/agent/src/launch.ts";
import { ImageLayout } from "../scripts/image/archive.ts";
import { isAgentFile } from "../scripts/image/root-filesystem.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-image-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** The archive of an image whose one layer has a program, a link to it and a text. */
async function archiveOf(name: string, text: string, time: Date, mode: number): Promise<Buffer> {
  const content = join(directory, `${name}-content`);
  mkdirSync(join(content, "bin"), { recursive: true });
  writeFileSync(join(content, "text"), text, { mode });
  writeFileSync(join(content, "bin/program"), "#!/bin/true\n", { mode: 0o755 });
  symlinkSync("/bin/program", join(content, "program"));
  for (const path of ["text", "bin/program", "bin"]) utimesSync(join(content, path), time, time);
  const layout = new ImageLayout(join(directory, name), 0);
  const layers = [await layout.addLayer(content, "a test")];
  layout.finish("example/agent:1", [{ architecture: "amd64", layers, runtime: { Cmd: ["/program"] } }]);
  const file = join(directory, `${name}.tar`);
  await layout.writeArchive(file);
  return readFileSync(file);
}

it("has the same bytes whenever, and with whatever rights for others, its files were written", async () => {
  const once = await archiveOf("once", "text", new Date(0), 0o644);
  const again = await archiveOf("again", "text", new Date(), 0o664);
  expect(again.equals(once)).toBe(true);
  expect((await archiveOf("other", "Text", new Date(0), 0o644)).equals(once)).toBe(false);
});

it("leads from its index to each blob by digest and size", async () => {
  await archiveOf("image", "text", new Date(0), 0o644);
  const layout = join(directory, "image");
  const read = ({ digest, size }: { digest: string; size: number }) => {
    const bytes = readFileSync(join(layout, "blobs", ...digest.split(":")));
    expect(bytes.length).toBe(size);
    return bytes;
  };
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  expect(manifests[0].annotations).toEqual({
    "io.containerd.image.name": "example/agent:1",
    "org.opencontainers.image.ref.name": "1",
  });
  const index = JSON.parse(read(manifests[0]).toString());
  expect(index.manifests[0].platform).toEqual({ architecture: "amd64", os: "linux" });
  const manifest = JSON.parse(read(index.manifests[0]).toString());
  const configuration = JSON.parse(read(manifest.config).toString());
  expect(configuration).toMatchObject({ created: "1970-01-01T00:00:00Z", config: { Cmd: ["/program"] } });
  expect(configuration.rootfs.diff_ids).toHaveLength(manifest.layers.length);
  for (const layer of manifest.layers) read(layer);
});

it("has the files that the Dockerfile copies, which no engine builds here", () => {
  const dockerfile = readFileSync(join(import.meta.dirname, "../Dockerfile"), "utf8").replaceAll(
    /\\\n\s*/g,
    "",
  );
  expect(dockerfile).toContain(`#!/usr/bin/node ${agentOptions.join(" ")}|`);
  const [, copied = ""] = /^COPY --from=build (.*dist\/nodekeeper.*) \/nodekeeper\/$/m.exec(dockerfile) ?? [];
  const removed = [...dockerfile.matchAll(/rm dist\/nodekeeper\/(\S+)/g)].map(([, glob = ""]) => glob);
  const isCopied = (name: string) =>
    !removed.some((glob) => matchesGlob(name, glob)) &&
    copied.split(" ").some((path) => matchesGlob(name, basename(path)));
  const built = [
    "nodekeeper.js",
    "main.js",
    "cli-NQHPC42Z.js",
    "example-driver.js",
    "cli-NQHPC42Z.js.map",
    "package.json",
    "LICENSE",
  ];
  for (const name of [...built, "THIRD-PARTY-NOTICES.txt", "sbom.cdx.json", "README.md", "docs"])
    expect([name, isCopied(name)]).toEqual([name, isAgentFile(name)]);
});
