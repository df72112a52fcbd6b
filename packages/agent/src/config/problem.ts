import { ConfigurationRefused } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";

/** A problem of a configuration. */
export interface Problem {
  /** Source of the value: "/etc/nodekeeper/config.yaml:12:5", "flag --log-level", "env NODE_NAME", "host name". */
  source: string;
  /** Path of the setting, such as "reporting.collectInterval". Empty if the problem concerns the whole file. */
  path: string;
  /** Names the given value and the expected ones. */
  message: string;
}

/** Invalid configuration. The message lists all problems, one per line. */
export class ConfigurationError extends ConfigurationRefused {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const count = counted(problems.length, "problem");
    const lines = problems.map((problem) => `\n  ${describeProblem(problem)}`);
    super({ count, problems: lines.join("") });
    this.problems = problems;
  }

  /** All problems in one line, for Events and health checks. */
  get summary(): string {
    return this.problems.map(describeProblem).join("; ");
  }
}

function describeProblem({ source, path, message }: Problem): string {
  return path === "" ? `${source}: ${message}` : `${source}: ${path}: ${message}`;
}

/** Returns the name of a setting or variable, truncated for a problem. */
export function shortened(name: string): string {
  return name.length > 120 ? `${name.slice(0, 120)}...` : name;
}

/** Returns the candidate most similar to a misspelled name; undefined if none is similar. */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  const wanted = name.slice(0, 64).toLowerCase();
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

// Computes the Levenshtein distance row by row.
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
