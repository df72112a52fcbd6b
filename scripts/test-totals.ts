// Prints "N passed, N failed" of all suites that kept their results in a directory: node scripts/test-totals.ts DIRECTORY
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunResults } from "../test/support/run-report.ts";

const [directory = ""] = process.argv.slice(2);
const results: RunResults[] = await Promise.all(
  (await readdir(directory)).map(async (name) => JSON.parse(await readFile(join(directory, name), "utf8"))),
);
const unfinished = results.filter(({ passed }) => passed === undefined).length;
const passed = results.reduce((sum, result) => sum + (result.passed ?? 0), 0);
const failed = results.reduce((sum, result) => sum + (result.failed?.length ?? 0), 0);
for (const { test } of results.flatMap((result) => result.failed ?? [])) console.log(`failed: ${test}`);
// A total without the tests of a suite that broke off would be wrong.
if (unfinished > 0) console.log(`${unfinished} of ${results.length} suites did not come to their end`);
else console.log(`${passed} passed, ${failed} failed`);
if (unfinished + failed > 0 || passed === 0) process.exitCode = 1;
