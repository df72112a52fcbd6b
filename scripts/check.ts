// Every check of the code that does not run it: npm run check
import { findCallbackProblems } from "./callbacks.ts";
import { findDocsProblems } from "./docs/links.ts";
import { findErrorProblems } from "./errors-page.ts";
import { findEventProblems } from "./events-page.ts";
import { findFileDrift } from "./generated-files.ts";
import { findLanguageDrift } from "./language-descriptors.ts";
import { root, runTool } from "./programs.ts";
import { findRoomProblems } from "./rooms.ts";
import { findLockProblems } from "./supply/lock.ts";
import { findTermProblems } from "./terms.ts";

interface Step {
  name: string;
  /** Returns problems, one line each. */
  run(): Promise<string[]>;
}

/** A tool that fails prints its problems. */
const tool = (name: string, ...args: string[]) => runTool(name, args).then(() => []);

const steps: Step[] = [
  ...[
    "tsconfig.json",
    "packages/api/tsconfig.json",
    "packages/page/tsconfig.json",
    "test/page/tsconfig.json",
  ].map((project) => ({
    name: `types of ${project}`,
    run: () => tool("tsc", "-p", project),
  })),
  { name: "lint and format", run: () => tool("biome", "check", "--error-on-warnings", ".") },
  { name: "imports", run: () => findRoomProblems(root) },
  { name: "callbacks", run: () => findCallbackProblems(root) },
  { name: "terms", run: () => findTermProblems(root) },
  { name: "errors", run: () => findErrorProblems(root) },
  { name: "events", run: () => findEventProblems(root) },
  { name: "docs", run: () => findDocsProblems(root) },
  { name: "locked packages", run: () => findLockProblems(root) },
  { name: "unused code", run: () => tool("knip", "--no-progress") },
  { name: "generated files", run: async () => [...(await findLanguageDrift()), ...(await findFileDrift())] },
];

let failures = 0;
for (const step of steps) {
  const startedAt = performance.now();
  const problems = await step.run().catch((error: Error) => [error.message]);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${problems.length === 0 ? "ok  " : "FAIL"} ${step.name} (${seconds} s)`);
  if (problems.length === 0) continue;
  failures++;
  console.log(problems.join("\n").trimEnd().replace(/^/gm, "     "));
}
if (failures > 0) {
  console.log(`${failures} of ${steps.length} checks failed`);
  process.exitCode = 1;
}
