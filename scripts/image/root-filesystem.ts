import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { agentOptions } from "../../packages/agent/src/launch.ts";
import { type DebianPackage, downloadPackages } from "../debian-packages.ts";
import { root, run } from "../programs.ts";

/** An architecture for which images are built, by its names in Go, Debian and Node. */
export interface Architecture {
  /** Go's and Debian's, which are the same for these. */
  name: "amd64" | "arm64";
  /** Node's `process.arch`. */
  node: "x64" | "arm64";
}

export const architectures: readonly Architecture[] = [
  { name: "amd64", node: "x64" },
  { name: "arm64", node: "arm64" },
];

/** The architectures of an option `--arch`, by their names in `words`. Throws for others. */
export function chosenArchitectures(option: string, words: keyof Architecture): Architecture[] {
  const names = option.split(",");
  const chosen = architectures.filter((each) => names.includes(each[words]));
  if (chosen.length === new Set(names).size) return chosen;
  const all = architectures.map((each) => each[words]).join(", ");
  throw new Error(`--arch must be of ${all}; got "${option}"`);
}

/** The release of Debian whose libraries Node is linked to at run time. */
const RELEASE = "trixie";
// gcc-14-base has the licence of two of them.
const LIBRARIES = ["gcc-14-base", "libc6", "libgcc-s1", "libstdc++6"];
// Of a package's files those that a program needs to run, and the licence.
const KEPT = /^usr\/(?:lib|lib64|share\/doc)(?:\/|$)/;
const DROPPED = /\/(?:gconv|audit)\/|\.conf$|\/libc-gconv|^usr\/share\/doc\/[^/]+\/(?!copyright$)/;
/** Where the agent lies in the image. */
const HOME = "nodekeeper";

/**
 * Writes Node and the libraries it needs: the layer that stays the same from one version of the agent to the next. Returns
 * what it consists of: "libc6 2.41-12".
 */
export async function writeBase(
  directory: string,
  work: string,
  architecture: Architecture,
): Promise<string[]> {
  const contents = await writeLibraries(directory, work, architecture);
  for (const name of ["lib", "lib64"]) {
    mkdirSync(join(directory, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(directory, name));
  }
  write(
    join(directory, "etc/passwd"),
    "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
  );
  write(join(directory, "etc/group"), "root:x:0:\nnonroot:x:65532:\n");
  write(join(directory, "etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n");
  const version = nodeVersion();
  mkdirSync(join(directory, "usr/bin"), { recursive: true });
  copyFileSync(await nodeProgram(work, architecture, version), join(directory, "usr/bin/node"));
  chmodSync(join(directory, "usr/bin/node"), 0o755);
  write(join(directory, "usr/share/doc/node/copyright"), readFileSync(nodeLicence()));
  return [`node ${version}`, ...contents];
}

/**
 * Writes the agent that `npm run build` made in the directory `built`, without examples and source maps, and the
 * command `nodekeeper`.
 */
export function writeAgent(directory: string, built: string): void {
  const page = readdirSync(join(built, "page")).map((file) => join("page", file));
  for (const file of [...readdirSync(built).filter(isAgentFile), ...page])
    write(join(directory, HOME, file), readFileSync(join(built, file)));
  // The image has no env(1) that would look for Node. With V8's options, the agent does not have to start over.
  const start = readFileSync(join(built, "nodekeeper.js"), "utf8").replace(
    /^#!.*/,
    `#!/usr/bin/node ${agentOptions.join(" ")}`,
  );
  write(join(directory, HOME, "nodekeeper.js"), start, 0o755);
  mkdirSync(join(directory, "usr/bin"), { recursive: true });
  symlinkSync(`/${HOME}/nodekeeper.js`, join(directory, "usr/bin/nodekeeper"));
}

/** Whether a file of the built package is in the image: the program, and what its licences ask for. */
export function isAgentFile(name: string): boolean {
  if (["package.json", "LICENSE", "THIRD-PARTY-NOTICES.txt", "sbom.cdx.json"].includes(name)) return true;
  return name.endsWith(".js") && !name.startsWith("example-");
}

async function writeLibraries(directory: string, work: string, { name }: Architecture): Promise<string[]> {
  const downloads = join(work, `packages-${name}`);
  mkdirSync(downloads);
  const wanted = LIBRARIES.map(
    (each): DebianPackage => ({ name: each, release: RELEASE, architecture: name }),
  );
  const contents: string[] = [];
  for (const file of await downloadPackages(wanted, downloads)) {
    const unpacked = join(work, "unpacked");
    await run("dpkg-deb", ["-x", file, unpacked]);
    mkdirSync(directory, { recursive: true });
    for (const path of filesUnder(unpacked)) {
      if (!KEPT.test(path) || DROPPED.test(path)) continue;
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      renameSync(join(unpacked, path), join(directory, path));
    }
    rmSync(unpacked, { recursive: true });
    // Where scanners look in an image that has no package manager.
    const control = await run("dpkg-deb", ["-f", file]);
    const field = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(control)?.[1] ?? "";
    write(join(directory, "var/lib/dpkg/status.d", field("Package")), control);
    contents.push(`${field("Package")} ${field("Version")}`);
  }
  return contents;
}

/** Files and links, as paths from the directory. */
function filesUnder(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((each) => !each.isDirectory())
    .map((each) => relative(directory, join(each.parentPath, each.name)));
}

/** The version of Node that the project is tested with: its devDependency. */
export function nodeVersion(): string {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies.node;
}

/** Returns the path of the licence of Node, V8, OpenSSL and its other parts. It is the same for all architectures. */
export function nodeLicence(): string {
  const installed = createRequire(join(root, "node_modules/node/package.json"));
  return join(dirname(installed.resolve(`node-linux-${process.arch}/package.json`)), "LICENSE");
}

/** The path of Node's executable for an architecture; another than this machine's is downloaded into the directory `work`. */
export async function nodeProgram(work: string, { node }: Architecture, version: string): Promise<string> {
  if (node === process.arch) return join(root, "node_modules/node/bin/node");
  const name = `node-linux-${node}`;
  await run("npm", ["pack", "--loglevel=error", `${name}@${version}`, "--pack-destination", work]);
  await run("tar", ["-xzf", join(work, `${name}-${version}.tgz`), "-C", work, "package/bin/node"]);
  return join(work, "package/bin/node");
}

function write(path: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}
