import { execFileSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
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
  id?: string;
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  if?: string;
  "continue-on-error"?: boolean;
  permissions?: Record<string, string>;
  needs?: string[];
  /** A workflow of the repository in place of steps. */
  uses?: string;
  steps?: Step[];
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const hasRights = ({ permissions = {} }: Job) => Object.values(permissions).includes("write");

describe.each(workflows)("the workflow $name", ({ text, workflow }) => {
  it("names actions by commit, with the release that it is", () => {
    const lines = text.split("\n").filter((line) => /\buses: (?!\.\/)/.test(line));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("gives rights to jobs that run no code of the repository and its dependencies", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    for (const { steps = [] } of Object.values(workflow.jobs).filter(hasRights)) {
      for (const step of steps.filter(({ uses = "" }) => uses.startsWith("actions/checkout@")))
        expect(step.with).toEqual({
          "persist-credentials": false,
          "sparse-checkout": "/.ci/publish\n/package.json\n",
          "sparse-checkout-cone-mode": false,
        });
      const commands = steps.map(({ run = "" }) => run).join("\n");
      expect(commands).not.toMatch(/\bnpx\b|\bnpm\b|\bnode\b|release\/(?!assets\/\*)/);
      expect(commands.match(/(?<![\w/])\.{1,2}\/\S+|\.ci\/\S+/g) ?? []).toEqual([
        ".ci/publish",
        ".ci/publish",
      ]);
    }
  });

  it("gives secrets to jobs with rights only", () => {
    for (const job of Object.values(workflow.jobs).filter((each) => !hasRights(each)))
      expect(JSON.stringify(job)).not.toMatch(/secrets\.|github\.token/);
  });
});

it("a pull request is measured beside what it is based on, and no figure fails it", () => {
  const { bench } = workflows.find(({ name }) => name === "ci.yml")!.workflow.jobs;
  expect(bench).toMatchObject({ if: "github.event_name == 'pull_request'", "continue-on-error": true });
  const commands = bench!.steps!.map(({ run = "" }) => run).join("\n");
  expect(commands).toMatch(/npm run --silent bench:compare -- "\$BASE" --quick/);
});

const release = workflows.find(({ name }) => name === "release.yml")!;

it("the changelog begins with the version, or with what is not released after it", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const [first] = /(?<=^## \[).*?(?=\])/m.exec(readFileSync(join(root, "CHANGELOG.md"), "utf8"))!;
  expect(["Unreleased", version.replace(/-.*/, "")]).toContain(first);
});

it("packages and chart have one version", () => {
  const files = globSync("{package.json,packages/*/package.json,deploy/helm/nodekeeper/Chart.yaml}", {
    cwd: root,
  });
  const versions = files.flatMap((file) => {
    const {
      version,
      appVersion = version,
      dependencies = {},
      devDependencies = {},
    } = parse(readFileSync(join(root, file), "utf8"));
    const own = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) =>
      name.startsWith("@nodekeeper/"),
    );
    return [version, appVersion, ...own.map(([, each]) => each)];
  });
  expect(versions.length).toBeGreaterThan(files.length);
  expect(new Set(versions).size).toBe(1);
});

it("a release is published after all suites have passed, without a long-lived token", () => {
  const { gate, publish } = release.workflow.jobs;
  expect(gate?.uses).toBe("./.github/workflows/ci.yml");
  expect(publish?.needs).toEqual(["gate", "build"]);
  expect(release.text.match(/secrets\.\w+/g)).toEqual(["secrets.GITHUB_TOKEN"]);
  expect(release.text).not.toContain("NODE_AUTH_TOKEN");
});

it("a release signs what .ci/publish published: provenance of all, a bill of materials of each architecture", () => {
  const steps = release.workflow.jobs.publish!.steps!;
  const published = steps.findIndex(({ id }) => id === "published");
  const signed = steps
    .filter(({ uses = "" }, at) => uses.startsWith("actions/attest@") && at > published)
    .map((step) => {
      const { "subject-digest": digest = "", "subject-path": path, "sbom-path": sbom } = step.with!;
      return [path ?? /outputs\.([\w-]+)-digest/.exec(`${digest}`)?.[1], sbom];
    });
  expect(signed).toEqual([
    ["image", undefined],
    ["chart", undefined],
    ...["amd64", "arm64"].flatMap((each) => [
      [each, undefined],
      [each, `release/assets/nodekeeper-image-${each}.cdx.json`],
    ]),
    ["release/assets/*\nrelease/packages/*\n", undefined],
  ]);
});

it.each([
  ["v1.2.3-rc.1", true],
  ["v1.2.3", false],
])("the release of %s is one of a candidate: %s", (tag, isCandidate) => {
  const { run = "" } = release.workflow.jobs.publish!.steps!.at(-1)!;
  // Says each command of gh, and that there is no release yet.
  const gh = 'gh() { [[ $2 != view ]] || return 1; echo "gh $*"; }';
  const env = { ...process.env, GITHUB_REF_NAME: tag, IMAGE: "example.com/nodekeeper", DIGEST: "sha256:1" };
  const said = execFileSync("bash", ["-e", "-o", "pipefail", "-c", `${gh}\n${run}`], {
    env,
    encoding: "utf8",
  });
  const [created, , published] = said.trim().split("\n");
  expect(created).toContain(`gh release create ${tag} --draft --verify-tag`);
  expect(created?.includes(" --prerelease ")).toBe(isCandidate);
  expect(published).toBe(`gh release edit ${tag} --draft=false`);
});

it("a release has files of this repository that are there", () => {
  const { text } = release;
  const paths = text.match(/\bdeploy\/[\w./-]+/g) ?? [];
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths) expect(existsSync(join(root, path)), path).toBe(true);
});

it("a release has the licences of what its executables contain", () => {
  const { text } = release;
  const copied = text.match(/\bcp .* release\/assets$/gm)?.join("\n");
  for (const file of ["LICENSE", "dist/LICENSE-node.txt", "dist/nodekeeper/THIRD-PARTY-NOTICES.txt"])
    expect(copied).toContain(` ${file} `);
});
