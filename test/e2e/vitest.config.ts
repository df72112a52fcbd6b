import { defineConfig } from "vitest/config";
import { RunReport } from "../support/run-report.ts";

// Real servers on few cores, and time enough for an outage of a minute. Four files at a time, each with servers of its
// own: they mostly wait.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.e2e.test.ts"],
    pool: "forks",
    maxWorkers: 4,
    testTimeout: 900_000,
    hookTimeout: 600_000,
    reporters: ["default", new RunReport()],
  },
});
