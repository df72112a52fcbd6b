import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { common } from "../../vitest.config.ts";
import { RunReport } from "../support/run-report.ts";

/** The tests of this directory and the property tests in full. `npm test` runs them sized down: see test/support/sizes.ts. */
export default defineConfig({
  test: {
    ...common,
    root: join(import.meta.dirname, "..", ".."),
    include: ["test/heavy/*.test.ts", "packages/*/src/**/*.property.test.ts"],
    maxWorkers: 2,
    env: { ...common.env, TEST_SIZE: "full" },
    reporters: ["default", new RunReport()],
  },
});
