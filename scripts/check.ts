// Every check of the code that does not run it: npm run check
import { findCallbackProblems } from "./callbacks.ts";
import { findDocsProblems } from "./docs/links.ts";
import { findErrorProblems } from "./errors-page.ts";
import { findEventProblems } from "./events-page.ts";
import { findDrift } from "./generated-code.ts";
import { findFileDrift } from "./generated-files.ts";
import { findGoDrift } from "./go-descriptors.ts";
import { findRoomProblems } from "./rooms.ts";
import { root, runCommand } from "./run-command.ts";
import { findLockProblems } from "./supply/lock.ts";
import { findTermProblems } from "./terms.ts";

interface Step {
  name: string;
  run(): Promise<{ ok: boolean; output: string }>;
}

const steps: Step[] = [
  ...[
    "tsconfig.json",
    "packages/api/tsconfig.json",
    "packages/page/tsconfig.json",
    "test/page/tsconfig.json",
  ].map((project) => ({
    name: `types of ${project}`,
    run: () => runCommand("tsc", ["-p", project]),
  })),
  { name: "lint and format", run: () => runCommand("biome", ["check", "--error-on-warnings", "."]) },
  { name: "imports", run: async () => fromProblems(await findRoomProblems(root)) },
  { name: "callbacks", run: async () => fromProblems(await findCallbackProblems(root)) },
  { name: "terms", run: async () => fromProblems(await findTermProblems(root)) },
  { name: "errors", run: async () => fromProblems(await findErrorProblems(root)) },
  { name: "events", run: async () => fromProblems(await findEventProblems(root)) },
  { name: "docs", run: async () => fromProblems(await findDocsProblems(root)) },
  { name: "locked packages", run: async () => fromProblems(await findLockProblems(root)) },
  { name: "unused code", run: () => runCommand("knip", ["--no-progress"]) },
  {
    name: "generated code",
    run: async () =>
      fromProblems([...(await findDrift()), ...(await findGoDrift()), ...(await findFileDrift())]),
  },
];

let failures = 0;
for (const step of steps) {
  const startedAt = performance.now();
  const { ok, output } = await step.run().catch((error: Error) => ({ ok: false, output: error.message }));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${ok ? "ok  " : "FAIL"} ${step.name} (${seconds} s)`);
  if (ok) continue;
  failures++;
  console.log(output.trimEnd().replace(/^/gm, "     "));
}
if (failures > 0) {
  console.log(`${failures} of ${steps.length} checks failed`);
  process.exitCode = 1;
}

function fromProblems(problems: string[]) {
  return { ok: problems.length === 0, output: problems.join("\n") };
}
