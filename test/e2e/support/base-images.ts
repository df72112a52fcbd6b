import { execFile } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Language } from "../../../packages/create-plugin/src/templates.ts";
import type { BuildMounts, ImageBuilder } from "./image-builder.ts";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);
const node = join(import.meta.dirname, "../../../node_modules/node/bin/node");
const authorities = "/etc/ssl/certs/ca-certificates.crt";

/** Makes the image that a template's Dockerfile starts with, of the machine's programs; returns what a build sees beside it. */
export const baseImages: Readonly<
  Record<Language, (builder: ImageBuilder, directory: string) => Promise<BuildMounts>>
> = { typescript: nodeImage, go: goImage, python: pythonImage };

async function nodeImage(builder: ImageBuilder, directory: string): Promise<BuildMounts> {
  await writeShell(directory);
  const local = join(directory, "usr/local");
  await copyPrograms(directory, { [node]: "/usr/local/bin/node" });
  const { stdout } = await execute("npm", ["root", "--global"]);
  const npm = existsSync(join(stdout.trim(), "npm"))
    ? join(stdout.trim(), "npm")
    : "/usr/lib/node_modules/npm";
  cpSync(realpathSync(npm), join(local, "lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm"));
  await builder.base("node:24-trixie-slim", directory, "/usr/local/bin:/bin");
  return {};
}

// The toolchain is not copied: the last stage has none of it.
async function goImage(builder: ImageBuilder, directory: string): Promise<BuildMounts> {
  await writeShell(directory);
  await builder.base("golang:1.25", directory, "/usr/local/go/bin:/bin");
  const { stdout } = await execute("go", ["env", "GOROOT", "GOMODCACHE", "GOCACHE"]);
  const [toolchain, modules, cache] = stdout.trim().split("\n") as [string, string, string];
  return {
    [toolchain]: "/usr/local/go",
    [modules]: "/root/go/pkg/mod",
    [cache]: "/root/.cache/go-build",
  };
}

async function pythonImage(builder: ImageBuilder, directory: string): Promise<BuildMounts> {
  await writeShell(directory);
  const facts =
    "import os, sys, sysconfig; print(os.path.realpath(sys.executable), sysconfig.get_path('stdlib'), sep='\\n')";
  const { stdout } = await execute("python3", ["-c", facts]);
  const [interpreter, library] = stdout.trim().split("\n") as [string, string];
  await copyPrograms(directory, { [interpreter]: interpreter });
  const filter = (path: string) =>
    !/\/(__pycache__|tests?|config-[^/]*|site-packages\/(?!pip(\/|$)).*)$/.test(path);
  cpSync(library, join(directory, library), { recursive: true, filter });
  const extensions = (await execute("find", [join(directory, library, "lib-dynload"), "-name", "*.so"]))
    .stdout;
  // Packages are linked with libstdc++, as Node is; every image of Debian has it.
  await copyLibraries(directory, [interpreter, node, ...extensions.trim().split("\n")]);
  mkdirSync(join(directory, "usr/local/bin"), { recursive: true });
  symlinkSync(interpreter, join(directory, "usr/local/bin/python"));
  const pip = '#!/bin/sh\nexec python -m pip "$@"\n';
  writeFileSync(join(directory, "usr/local/bin/pip"), pip, { mode: 0o755 });
  await builder.base("python:3.13-slim", directory, "/usr/local/bin:/bin");
  return await pipMounts(`${directory}-pip.conf`);
}

/** pip takes packages from where it takes them on the machine. */
async function pipMounts(file: string): Promise<BuildMounts> {
  const { stdout } = await execute("python3", ["-m", "pip", "config", "list"]);
  const settings = new Map(
    [...stdout.matchAll(/^[^=]*\.(index-url|extra-index-url|find-links|cert)='(.*)'$/gm)].map(
      ([, name, value]) => [name!, value!] as const,
    ),
  );
  const lines = [...settings].map(([name, value]) => `${name} = ${value}`);
  writeFileSync(file, `[global]\n${lines.join("\n")}\n`);
  const paths = [...settings.values()].filter((value) => value.startsWith("/") && existsSync(value));
  return { [file]: "/etc/pip.conf", ...Object.fromEntries(paths.map((path) => [path, path])) };
}

/** Writes a shell and its programs, and the authorities by which the machine trusts. */
async function writeShell(directory: string): Promise<void> {
  for (const name of ["bin", "tmp", "root", "etc/ssl/certs"])
    mkdirSync(join(directory, name), { recursive: true });
  const busybox = pathOf("busybox");
  copyFileSync(busybox, join(directory, "bin/busybox"));
  const { stdout } = await execute(busybox, ["--list"]);
  for (const name of stdout
    .trim()
    .split("\n")
    .filter((each) => each !== "busybox"))
    symlinkSync("busybox", join(directory, "bin", name));
  mkdirSync(join(directory, "usr/bin"), { recursive: true });
  symlinkSync("/bin/env", join(directory, "usr/bin/env"));
  writeFileSync(join(directory, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  if (existsSync(authorities)) copyFileSync(authorities, join(directory, authorities));
}

/** Copies programs with the libraries that they are linked with: path on the machine to path in the image. */
async function copyPrograms(directory: string, programs: Readonly<Record<string, string>>): Promise<void> {
  for (const [from, to] of Object.entries(programs)) {
    mkdirSync(join(directory, dirname(to)), { recursive: true });
    copyFileSync(from, join(directory, to));
  }
  await copyLibraries(directory, Object.keys(programs));
}

async function copyLibraries(directory: string, programs: readonly string[]): Promise<void> {
  const { stdout } = await execute("ldd", programs);
  const linked = [...stdout.matchAll(/(?:=> |^\t)(\/\S+) \(/gm)].map(([, path]) => path!);
  // Packages are linked with the other parts of libc, too.
  const libc = linked.find((path) => path.endsWith("/libc.so.6"));
  const parts = libc ? globSync(join(dirname(libc), "lib{dl,pthread,resolv,rt,util}.so.?")) : [];
  for (const path of [...linked, ...parts]) {
    mkdirSync(join(directory, dirname(path)), { recursive: true });
    copyFileSync(path, join(directory, path));
  }
}
