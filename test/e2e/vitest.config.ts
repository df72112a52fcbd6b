import { defineConfig } from "vitest/config";

// Real servers on few cores: one file at a time, and time enough for an outage of a minute.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.e2e.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 120_000,
  },
});
