import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundleWorld, type SourceChange } from "./machine/bundle.ts";

// Below node_modules, so that the bundle finds the packages that it imports.
const parent = join(import.meta.dirname, "../../node_modules/.cache/simulation");

export type Simulation = typeof import("./simulate.ts");

/**
 * Bundles the agent with its world, as the sources are now. Returns the path of the bundle.
 * @param changes made to the sources on the way
 */
export async function buildWorld(changes: readonly SourceChange[] = []): Promise<string> {
  mkdirSync(parent, { recursive: true });
  const path = join(mkdtempSync(join(parent, "world-")), "world.mjs");
  await bundleWorld(path, changes);
  return path;
}

export async function loadWorld(path: string): Promise<Simulation> {
  return await import(pathToFileURL(path).href);
}

/** Removes a bundle. */
export function removeWorld(path: string): void {
  rmSync(dirname(path), { recursive: true, force: true });
}
