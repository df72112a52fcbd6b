import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { printProgress, run } from "../../../scripts/programs.ts";
import { cacheDirectory, type Part } from "../support/parts.ts";

export interface NpmProgram {
  /** The package. */
  name: string;
  version: string;
  /** Its script that Node runs, by its path in the package. */
  script: string;
  /** Packages in place of those that its dependencies ask for. */
  overrides: Readonly<Record<string, string>>;
}

/** The script of a package of npm that is installed into the cache once; none of its install scripts run. */
export async function prepareNpmProgram({ name, version, script, overrides }: NpmProgram): Promise<Part> {
  const directory = join(cacheDirectory, `${name}-${version}`);
  const part = { path: join(directory, "node_modules", name, script), version };
  if (existsSync(part.path)) return part;
  printProgress(`installing ${name} ${version}`);
  const unfinished = `${directory}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    const manifest = { private: true, dependencies: { [name]: version }, overrides };
    writeFileSync(join(unfinished, "package.json"), JSON.stringify(manifest));
    const options = ["--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"];
    // An npm that runs this names its own directory to those below it.
    await run("npm", ["install", ...options], {
      cwd: unfinished,
      env: { npm_config_local_prefix: unfinished },
    });
    rmSync(directory, { recursive: true, force: true });
    renameSync(unfinished, directory);
  } catch (error) {
    return {
      missing: `${name} ${version} can't be installed: ${error instanceof Error ? error.message : error}`,
    };
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return part;
}
