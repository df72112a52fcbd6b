import { defineConfig } from "vitest/config";
import { RunReport } from "../support/run-report.ts";

// Real servers on few cores, and time enough for an outage of a minute. Two files at a time, each with servers of its
// own: the longest of them mostly wait.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.e2e.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 900_000,
    hookTimeout: 600_000,
    reporters: ["default", new RunReport()],
  },
});
