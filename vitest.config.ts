import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { RunReport } from "./test/support/run-report.ts";

/** What all suites have in common. */
export const common = {
  pool: "forks",
  // Agents that tests start as processes load what was compiled before: half of their CPU time was that.
  env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node") },
  setupFiles: ["property-seed", "own-connections"].map((name) =>
    join(import.meta.dirname, `test/support/${name}.ts`),
  ),
  // Longer than any wait of @nodekeeper/testing/until, whose message says what was waited for.
  testTimeout: 600_000,
  hookTimeout: 600_000,
} as const;

// The tiers of CONTRIBUTING.md. The heavy and the end-to-end suites have configurations of their own beside them.
export default defineConfig({
  test: {
    // Most tests wait more than they work: eight keep two cores busy.
    maxWorkers: 8,
    reporters: ["default", new RunReport()],
    projects: [
      {
        test: {
          ...common,
          name: "unit",
          // Half the CPU time. It works because no module has state of its own; what a test spies on is restored.
          isolate: false,
          restoreMocks: true,
          include: ["packages/*/src/**/*.test.ts", "test/scripts/*.test.ts"],
        },
      },
      {
        test: {
          ...common,
          name: "integration",
          // As above. An agent of each test, but one process and one import of all modules for all files of a worker.
          isolate: false,
          include: ["test/*.test.ts", "test/heavy/*.test.ts", "test/soak/*.test.ts"],
        },
      },
    ],
  },
});
