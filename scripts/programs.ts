import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** The repository's directory. */
export const root = join(import.meta.dirname, "..");

/** Prints one line of progress with the seconds since the start. */
export function printProgress(text: string): void {
  process.stdout.write(`[${process.uptime().toFixed(0).padStart(4)} s] ${text}\n`);
}

export interface RunOptions {
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  /** Printed every 30 s that the command still runs, since some take many minutes. */
  progress?: (lines: number) => string;
}

const PROGRESS_MS = 30_000;
const TAIL_CHARACTERS = 20_000;

/** Runs a command and returns its stdout. If it fails, rejects with the last 20,000 characters of its output. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { cwd, env, progress } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...(cwd ? { cwd } : {}),
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let tail = "";
    let lines = 0;
    const count = (chunk: Buffer) => {
      tail = (tail + chunk).slice(-TAIL_CHARACTERS);
      for (const byte of chunk) if (byte === 10) lines++;
    };
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk;
      count(chunk);
    });
    child.stderr.on("data", count);
    const timer = progress && setInterval(() => printProgress(progress(lines)), PROGRESS_MS);
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearInterval(timer);
      if (code === 0) resolve(stdout);
      else reject(new Error(`${command} ${args.join(" ")} ended with ${code ?? signal}:\n${tail.trim()}`));
    });
  });
}

/** As `run`, for a program of node_modules/.bin, in the repository. */
export function runTool(name: string, args: readonly string[]): Promise<string> {
  const bin = join(root, "node_modules/.bin");
  // buf's plugin is a script that must find the pinned node.
  return run(join(bin, name), args, { cwd: root, env: { PATH: `${bin}:${process.env.PATH}` } });
}

/** Returns what `use` does with a temporary directory, which is removed after that. */
export async function withTemporaryDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "nodekeeper-"));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Returns the full path of a program on PATH. Undefined if there is none. */
export function findProgram(name: string): string | undefined {
  for (const directory of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The next directory may have it.
    }
  }
  return undefined;
}
