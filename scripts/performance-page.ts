import { glob, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { explanations } from "../bench/peers/explanations.ts";
import { performancePicture, performanceSections } from "../bench/peers/page.ts";
import type { Result } from "../bench/peers/results.ts";
import { rows } from "../bench/peers/rows.ts";
import { withSections } from "./docs/tables.ts";
import { root } from "./programs.ts";

/** docs/performance.md with the results of `npm run bench:peers`. */
export async function performancePage(page: string): Promise<string> {
  return withSections(page, performanceSections({ rows, results: await readResults(), explanations }));
}

/** docs/images/performance.svg. */
export async function performanceImage(): Promise<string> {
  return performancePicture({ rows, results: await readResults() });
}

/** The files of bench/results by the names of their rows. */
export async function readResults(): Promise<Map<string, Result>> {
  const results = new Map<string, Result>();
  for await (const path of glob("bench/results/*.json", { cwd: root }))
    results.set(basename(path, ".json"), JSON.parse(await readFile(join(root, path), "utf8")) as Result);
  return results;
}
