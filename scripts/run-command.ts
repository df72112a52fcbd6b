import { spawn } from "node:child_process";
import { join } from "node:path";

/** The repository's folder. */
export const root = join(import.meta.dirname, "..");

/** Runs a program of node_modules/.bin in the repository; gives its exit code and all it printed. */
export async function runCommand(program: string, args: string[]): Promise<{ ok: boolean; output: string }> {
  const bin = join(root, "node_modules/.bin");
  const child = spawn(join(bin, program), args, {
    cwd: root,
    // buf's plugin is a script that must find the pinned node.
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  return { ok: code === 0, output };
}
