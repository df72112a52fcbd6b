import { NodekeeperError } from "@nodekeeper/core/lib";

/** One problem of a configuration. */
export interface Problem {
  /** Source of the value: "/etc/nodekeeper/config.yaml:12", "flag --log-level", "env NODE_NAME", "host name". */
  source: string;
  /** Path of the setting, such as "reporting.collectInterval"; empty if the problem concerns the whole file. */
  path: string;
  /** The given value and what was expected. */
  message: string;
}

/** A configuration is invalid. The message lists every problem, one per line. */
export class ConfigurationError extends NodekeeperError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], details: { cause?: unknown } = {}) {
    const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    const lines = problems.map((problem) => `\n  ${describeProblem(problem)}`);
    super("invalid", `the configuration has ${count}:${lines.join("")}`, { id: "NK1001", ...details });
    this.problems = problems;
  }
}

function describeProblem({ source, path, message }: Problem): string {
  return path === "" ? `${source}: ${message}` : `${source}: ${path}: ${message}`;
}

const MAX_VALUE_LENGTH = 80;

/** "got 5, expected ...", with the value as JSON, truncated. */
export function wrongValue(value: unknown, expected: string): string {
  const written = JSON.stringify(value) ?? String(value);
  const shown = written.length > MAX_VALUE_LENGTH ? `${written.slice(0, MAX_VALUE_LENGTH)}...` : written;
  return `got ${shown}, expected ${expected}`;
}

/** The candidate most similar to a misspelt name; undefined if none is similar. */
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

// Levenshtein distance, computed row by row.
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
