import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { age, problemPlace } from "@nodekeeper/api/wording";
import { type Output, table } from "./output.ts";

/** A part of a driver's reports or answers that the agent does not publish or accept. */
export type DriverProblem = NonNullable<ApiAnswers["plugins"][number]["driverProblems"]>[number];

/** Returns a table of problems, one in each row. */
export function problemTable(problems: readonly DriverProblem[], output: Output, now: number): string {
  const rows = problems.map((problem) => [
    problem.errorId,
    age(now - problem.since),
    problemPlace(problem) || "-",
    problem.message,
  ]);
  return table(output, ["ID", "SINCE", "WHERE", "MESSAGE"], rows);
}
