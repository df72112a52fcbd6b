import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "..");
const directory = join(root, ".github/workflows");
const workflows = readdirSync(directory).map((name) => {
  const text = readFileSync(join(directory, name), "utf8");
  return { name, text, workflow: parse(text) as Workflow };
});

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  permissions?: Record<string, string>;
  steps: Step[];
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const hasRights = ({ permissions = {} }: Job) => Object.values(permissions).includes("write");

describe.each(workflows)("the workflow $name", ({ text, workflow }) => {
  it("names actions by commit, with the release that it is", () => {
    const lines = text.split("\n").filter((line) => /\buses:/.test(line));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("gives rights to jobs that run no code of the repository and its dependencies", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    for (const { steps } of Object.values(workflow.jobs).filter(hasRights)) {
      expect(steps.map(({ uses = "" }) => uses).join()).not.toContain("actions/checkout");
      const commands = steps.map(({ run = "" }) => run).join("\n");
      expect(commands).not.toMatch(/\bnpx\b|\bnpm (?!publish --ignore-scripts )|\bnode\b/);
    }
  });

  it("gives secrets to jobs with rights only", () => {
    for (const job of Object.values(workflow.jobs).filter((each) => !hasRights(each)))
      expect(JSON.stringify(job)).not.toMatch(/secrets\.|github\.token/);
  });
});

it("a release has files of this repository that are there", () => {
  const { text } = workflows.find(({ name }) => name === "release.yml")!;
  const paths = text.match(/\bdeploy\/[\w./-]+/g) ?? [];
  expect(paths.length).toBeGreaterThan(1);
  for (const path of paths) expect(existsSync(join(root, path)), path).toBe(true);
});

it("a release has the licences of what its executables contain", () => {
  const { text } = workflows.find(({ name }) => name === "release.yml")!;
  const copied = text.match(/\bcp .* release\/assets$/gm)?.join("\n");
  for (const file of ["LICENSE", "dist/LICENSE-node.txt", "dist/nodekeeper/THIRD-PARTY-NOTICES.txt"])
    expect(copied).toContain(` ${file} `);
});
