import { findProblem } from "@nodekeeper/api/error-catalogue";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { type Output, type PageFormat, printAs } from "./output.ts";

/**
 * `nodekeeper explain ID`: prints the section of docs/errors.md about an error: what it means, and what to do. Throws
 * `invalid` for an id that this version does not know. Capital letters are not required.
 */
export function explainErrorCommand(id: string, format: PageFormat, output: Output): void {
  const problem = findProblem(id.toUpperCase());
  if (!problem) {
    const given = JSON.stringify(id.slice(0, 100));
    throw new NodekeeperError(
      "invalid",
      `explain: ${given} is neither "pod" nor "node", nor an id of an error that this version knows, such as NK1603`,
    );
  }
  const { id: found, title, cause, remedy } = problem;
  printAs(output, format, { id: found, title, cause, remedy }, () =>
    [`${found}: ${title}`, "", `Cause: ${cause}`, "", `Remedy: ${remedy}`, ""].join("\n"),
  );
}
