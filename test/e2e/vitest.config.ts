import { defineConfig } from "vitest/config";

// Real servers on few cores, and time enough for an outage of a minute. Two files at a time, each with servers of its
// own: the longest of them mostly wait.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.e2e.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 120_000,
  },
});
