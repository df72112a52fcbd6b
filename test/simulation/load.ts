import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundleWorld, type SourceChange } from "./machine/bundle.ts";

const directory = join(import.meta.dirname, "../../node_modules/.cache/simulation");

/**
 * Bundles the agent with its world, as the sources are now, and loads it.
 * @param name of the bundle; those with changes need one each
 */
export async function loadWorld(
  name = `world-${process.pid}`,
  changes: readonly SourceChange[] = [],
): Promise<typeof import("./simulate.ts")> {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${name}.mjs`);
  await bundleWorld(path, changes);
  return await import(pathToFileURL(path).href);
}
