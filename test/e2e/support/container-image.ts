import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** The name that the image has; nothing of that name can be pulled. */
export const imageName = "nodekeeper.invalid/busybox:e2e";
const programs = ["sh", "sleep", "cat", "echo", "true", "false", "env", "grep", "ls"];

/** Writes an image that contains only busybox, in the format of `docker save`. Returns the path of the archive. */
export async function writeImage(directory: string, busybox: string): Promise<string> {
  const layer = join(directory, "image", "layer");
  const parts = join(directory, "image", "parts");
  mkdirSync(join(layer, "bin"), { recursive: true });
  mkdirSync(parts, { recursive: true });
  copyFileSync(busybox, join(layer, "bin", "busybox"));
  for (const program of programs) symlinkSync("busybox", join(layer, "bin", program));
  await execute("tar", ["-C", layer, "-cf", join(parts, "layer.tar"), "."]);
  const digest = createHash("sha256")
    .update(readFileSync(join(parts, "layer.tar")))
    .digest("hex");
  const config = {
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    config: { Cmd: ["/bin/sleep", "1000000"], Env: ["PATH=/bin"] },
    rootfs: { type: "layers", diff_ids: [`sha256:${digest}`] },
  };
  const manifest = [{ Config: "config.json", RepoTags: [imageName], Layers: ["layer.tar"] }];
  writeFileSync(join(parts, "config.json"), JSON.stringify(config));
  writeFileSync(join(parts, "manifest.json"), JSON.stringify(manifest));
  const archive = join(directory, "image", "image.tar");
  await execute("tar", ["-C", parts, "-cf", archive, "manifest.json", "config.json", "layer.tar"]);
  return archive;
}
