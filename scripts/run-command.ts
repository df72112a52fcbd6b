import { execFile } from "node:child_process";
import { join } from "node:path";

/** The repository's directory. */
export const root = join(import.meta.dirname, "..");

const LARGEST_OUTPUT = 256 * 1024 * 1024;

/** Runs a program of node_modules/.bin in the repository. Returns whether it succeeded, and its output. */
export function runCommand(program: string, args: string[]): Promise<{ ok: boolean; output: string }> {
  const bin = join(root, "node_modules/.bin");
  // buf's plugin is a script that must find the pinned node.
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  return new Promise((resolve) => {
    const options = { cwd: root, env, maxBuffer: LARGEST_OUTPUT };
    execFile(join(bin, program), args, options, (error, stdout, stderr) =>
      resolve({ ok: !error, output: `${stdout}${stderr}` || (error?.message ?? "") }),
    );
  });
}
