import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { age } from "@nodekeeper/api/wording";
import type { Clock } from "@nodekeeper/core/lib";
import { printMessage } from "./output.ts";

/**
 * Prints problems of the container runtime to standard error, if there are any.
 * @param consequence what they mean for the output: "the states below may be out of date"
 */
export function printRuntimeProblems(
  { listedAt, problems }: Pick<ApiAnswers["pods"], "listedAt" | "problems">,
  consequence: string,
  clock: Clock,
): void {
  if (problems.length === 0) return;
  const listed =
    listedAt === undefined
      ? "has not been listed since the agent started"
      : `last listed its pods ${age(clock.now() - listedAt)} ago`;
  printMessage(`the container runtime ${listed}; ${consequence}`);
  for (const problem of problems) printMessage(`container runtime: ${problem}`);
}
