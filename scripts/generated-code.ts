import { cp, glob, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, runCommand } from "./run-command.ts";

const generated = "packages/core/src/gen";

/** Generates packages/core/src/gen from proto/, without any network. */
export async function generate(): Promise<void> {
  await withFreshCode(async (fresh) => {
    await rm(join(root, generated), { recursive: true, force: true });
    await cp(fresh, join(root, generated), { recursive: true });
  });
}

/** Files of packages/core/src/gen that are not what proto/ gives: changed, missing or extra. */
export async function findDrift(): Promise<string[]> {
  return withFreshCode(async (fresh) => {
    const [wanted, present] = await Promise.all([readAll(fresh), readAll(join(root, generated))]);
    const names = [...new Set([...wanted.keys(), ...present.keys()])].sort();
    return names.flatMap((name) => {
      if (wanted.get(name) === present.get(name)) return [];
      const why = !wanted.has(name)
        ? "comes from no proto file"
        : !present.has(name)
          ? "is missing"
          : "differs";
      return [`${generated}/${name} ${why}: run "npm run generate"`];
    });
  });
}

async function withFreshCode<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "nodekeeper-generate-"));
  try {
    const { ok, output } = await runCommand("buf", ["generate", "--output", directory]);
    if (!ok) throw new Error(`buf generate failed:\n${output}`);
    return await use(join(directory, generated));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function readAll(directory: string): Promise<Map<string, string>> {
  const contents = new Map<string, string>();
  for await (const entry of glob("**/*", { cwd: directory, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    contents.set(path.slice(directory.length + 1), await readFile(path, "utf8"));
  }
  return contents;
}
