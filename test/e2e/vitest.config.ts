import { defineConfig } from "vitest/config";
import { RunReport } from "../support/run-report.ts";

// Real servers on few cores, and time enough for an outage of a minute. Three files at a time, each with servers of its
// own: they mostly wait, and two of them left half of two cores idle.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.e2e.test.ts"],
    pool: "forks",
    maxWorkers: 3,
    testTimeout: 900_000,
    hookTimeout: 600_000,
    reporters: ["default", new RunReport()],
  },
});
