import { createHash } from "node:crypto";
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findProgram, printProgress, run } from "../../../scripts/programs.ts";
import { cacheDirectory, type Part } from "../support/parts.ts";

export interface PythonProgram {
  /** The name in the cache. */
  name: string;
  /** The directory with main.py and requirements.txt. */
  directory: string;
  /** The package of this repository that it requires. */
  sdkDirectory: string;
}

/**
 * A directory with the program's main.py and the packages that it needs; once for each state of these and each Python. The
 * packages are in the program's own directory: not every machine has venv.
 */
export async function preparePython({ name, directory, sdkDirectory }: PythonProgram): Promise<Part> {
  if (!findProgram("python3")) return { missing: "Python is not installed" };
  const python = (await run("python3", ["--version"])).trim();
  const files = ["main.py", "requirements.txt"];
  const ofSdk = ["pyproject.toml", ...globSync("nodekeeper_sdk/**/*.{py,pyi}", { cwd: sdkDirectory }).sort()];
  const hash = createHash("sha256").update(python);
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(directory, file)));
  for (const file of ofSdk) hash.update(`${file}\n`).update(readFileSync(join(sdkDirectory, file)));
  const path = join(cacheDirectory, name, hash.digest("hex").slice(0, 12));
  const part = { path, version: python };
  if (existsSync(path)) return part;
  printProgress(`installing the packages of ${name} for ${python}`);
  const unfinished = `${path}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    for (const file of files) cpSync(join(directory, file), join(unfinished, file));
    // Paths in requirements.txt are relative to the working directory.
    const install = ["install", "--target", unfinished, "--requirement", "requirements.txt"];
    await run("python3", ["-m", "pip", ...install], { cwd: directory });
    rmSync(path, { recursive: true, force: true });
    renameSync(unfinished, path);
  } catch (error) {
    return { missing: `${name} can't be prepared: ${error instanceof Error ? error.message : error}` };
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return part;
}
