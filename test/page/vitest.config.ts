import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { common } from "../../vitest.config.ts";
import { RunReport } from "../support/run-report.ts";

/** The page in a real browser. One browser for all files, two files at a time: each has its own agent and its own profiles. */
export default defineConfig({
  test: {
    ...common,
    root: join(import.meta.dirname, "..", ".."),
    include: ["test/page/*.test.ts"],
    globalSetup: join(import.meta.dirname, "support/global-setup.ts"),
    maxWorkers: 2,
    reporters: ["default", new RunReport()],
  },
});
