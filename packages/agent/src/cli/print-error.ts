import { findProblem } from "@nodekeeper/api/error-catalogue";
import { errorIdOf, messageWithId } from "@nodekeeper/core/lib";
import { printMessage } from "./output.ts";

/** Prints an error to standard error. If it has an id, its cause and remedy follow. */
export function printError(error: unknown): void {
  const id = errorIdOf(error);
  printMessage(messageWithId(error));
  const problem = id && findProblem(id);
  if (problem) process.stderr.write(`  Cause: ${problem.cause}\n  Remedy: ${problem.remedy}\n`);
}
