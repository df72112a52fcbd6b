import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

const LONGEST_SHOWN = 10;

/** What a run of a suite came to, as its file in `TEST_RESULTS_DIR` has it. */
export interface RunResults {
  /** Absent while the suite is running, and if it never finished. */
  passed?: number;
  skipped?: number;
  /** Tests, files that can't be loaded, and errors outside of any test. */
  failed?: { test: string; message: string }[];
}

/**
 * Prints the slowest files and the number of passed, failed and skipped tests. If the environment variable
 * `TEST_RESULTS_DIR` is set, also writes the results to that directory, for `scripts/stress.ts` and `.ci/run`.
 */
export class RunReport implements Reporter {
  #began = 0;

  onTestRunStart(): void {
    this.#began = performance.now();
    writeResults({});
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const failed = [
      ...modules.flatMap((module) => module.errors().map((error) => failure(module.relativeModuleId, error))),
      ...modules.flatMap((module) =>
        [...module.children.allSuites()].flatMap((suite) =>
          suite.errors().map((error) => failure(`${module.relativeModuleId} > ${suite.fullName}`, error)),
        ),
      ),
      ...tests
        .filter((test) => test.result().state === "failed")
        .map((test) =>
          failure(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors?.[0]),
        ),
      ...unhandledErrors.map((error) => failure("outside of any test", error)),
    ];
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    writeResults({ passed: count("passed"), skipped: count("skipped"), failed });
    printLongest(modules);
    const seconds = Math.round((performance.now() - this.#began) / 1000);
    console.log(
      `\n${count("passed")} passed, ${failed.length} failed, ${count("skipped")} skipped in ${seconds} s`,
    );
  }
}

function failure(test: string, error: { message: string } | undefined): { test: string; message: string } {
  return { test, message: error?.message ?? "no message" };
}

function printLongest(modules: readonly TestModule[]): void {
  const times = modules.map((module) => ({ file: module.relativeModuleId, ...module.diagnostic() }));
  times.sort((a, b) => b.duration - a.duration);
  console.log("\nLongest files:");
  for (const { file, duration } of times.slice(0, LONGEST_SHOWN)) {
    console.log(`${(duration / 1000).toFixed(1).padStart(7)} s  ${file}`);
  }
}

function writeResults(results: RunResults): void {
  const directory = process.env.TEST_RESULTS_DIR;
  if (!directory) return;
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${process.pid}.json`), JSON.stringify(results));
}
