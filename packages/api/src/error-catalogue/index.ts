import { type Problem, problemGroups } from "../errors/index.ts";

/** The problem with an id; undefined for the id of a newer agent. */
export function findProblem(id: string): Problem | undefined {
  for (const { problems } of problemGroups) {
    const found = Object.values(problems).find((problem) => problem.id === id);
    if (found) return found;
  }
  return undefined;
}
