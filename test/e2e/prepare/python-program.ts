import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findProgram, printProgress, run } from "../../../scripts/programs.ts";
import { cacheDirectory, type Part } from "../support/parts.ts";

export interface PythonProgram {
  /** The name in the cache. */
  name: string;
  /** The directory with main.py and requirements.txt. */
  directory: string;
  /** What the proto files are relative to. */
  protoDirectory: string;
  protoFiles: readonly string[];
}

/**
 * A directory with the program's main.py, its generated modules, and the packages that it needs; once for each state of
 * these and each Python. The packages are in the program's own directory: not every machine has venv.
 */
export async function preparePython(program: PythonProgram): Promise<Part> {
  const { name, directory, protoDirectory, protoFiles } = program;
  if (!findProgram("python3")) return { missing: "Python is not installed" };
  const python = (await run("python3", ["--version"])).trim();
  const files = ["main.py", "requirements.txt"].map((file) => join(directory, file));
  const sources = [...files, ...protoFiles.map((file) => join(protoDirectory, file))];
  const hash = createHash("sha256").update(python);
  for (const source of sources) hash.update(`${source.length}\n`).update(readFileSync(source));
  const path = join(cacheDirectory, name, hash.digest("hex").slice(0, 12));
  const part = { path, version: python };
  if (existsSync(path)) return part;
  printProgress(`installing the packages of ${name} for ${python}`);
  const unfinished = `${path}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    for (const file of files) cpSync(file, join(unfinished, file.slice(directory.length)));
    await run("python3", ["-m", "pip", "install", "--target", ".", "-r", "requirements.txt"], {
      cwd: unfinished,
    });
    const output = ["--python_out=.", "--grpc_python_out=."];
    await run("python3", ["-m", "grpc_tools.protoc", "-I", protoDirectory, ...output, ...protoFiles], {
      cwd: unfinished,
      env: { PYTHONPATH: unfinished },
    });
    rmSync(path, { recursive: true, force: true });
    renameSync(unfinished, path);
  } catch (error) {
    return { missing: `${name} can't be prepared: ${error instanceof Error ? error.message : error}` };
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return part;
}
